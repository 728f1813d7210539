// What a page or a Node program does with a client: `node node_clients.mjs NAME ADDRESS KEY` prints
// what it saw as JSON. The modules are those of package.json beside it.
import { HttpAgent } from "@ag-ui/client";
import { Chat } from "@ai-sdk/react";
import { createOpenAI } from "@ai-sdk/openai";
import {
  DefaultChatTransport,
  generateText,
  jsonSchema,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  Output,
  stepCountIs,
  streamText,
  tool,
} from "ai";

const [name, address, key] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${key}` };
const chat = (assistant, id) =>
  new Chat({
    id,
    transport: new DefaultChatTransport({ api: `${address}/api/assistants/${assistant}/chat`, headers }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
const texts = (message) => message.parts.filter((part) => part.type === "text").map((part) => part.text);
const settled = async (page) => {
  do await new Promise((resolve) => setTimeout(resolve, 50));
  while (page.status !== "ready" && page.status !== "error");
};

const clients = {
  async "ai-ui"() {
    const page = chat("tea", "recorded-tea");
    await page.sendMessage({ text: "all teas" });
    const answer = page.messages.at(-1);
    const sources = answer.parts.filter((part) => part.type === "source-url").map((part) => part.title);
    await page.regenerate();
    const orders = chat("orders", "recorded-orders");
    await orders.sendMessage({ text: "Which tea is 1?" });
    const waiting = orders.messages.at(-1).parts.find((part) => part.approval);
    await orders.addToolApprovalResponse({ id: waiting.approval.id, approved: true });
    await settled(orders);
    const call = orders.messages.at(-1).parts.find((part) => part.type === "dynamic-tool");
    const again = chat("tea", "recorded-tea");
    await again.resumeStream();
    return {
      text: texts(answer), sources, regenerated: page.messages.length, call: [call.state, call.output],
      approved: texts(orders.messages.at(-1)), resumed: again.messages.length,
    };
  },
  async "ai-openai"() {
    const model = createOpenAI({ baseURL: `${address}/v1`, apiKey: key });
    const messages = [{ role: "user", content: "all teas" }];
    const first = await generateText({ model: model("tea"), messages });
    messages.push(...first.response.messages, { role: "user", content: "all teas" });
    const streamed = streamText({ model: model("tea"), messages });
    const second = await streamed.text;
    const pick = tool({
      description: "Pick", inputSchema: jsonSchema({ type: "object", properties: { of: { type: "string" } } }),
      execute: async () => "green",
    });
    const tools = await generateText({
      model: model("picks"), prompt: "Pick", tools: { pick }, stopWhen: stepCountIs(3),
    });
    const schema = jsonSchema({
      type: "object", properties: { teas: { type: "array", items: { type: "string" } } },
      required: ["teas"], additionalProperties: false,
    });
    const form = await generateText({ model: model("json"), prompt: "all teas", output: Output.object({ schema }) });
    const completion = await generateText({ model: model.chat("tea"), prompt: "all teas" });
    return {
      text: first.text, sources: first.sources.map((each) => each.title), second, tools: tools.text,
      object: form.output, chat: completion.text, chatSources: completion.sources.length,
    };
  },
  async "ag-ui"() {
    const run = async (runId, assistant, messages, tools = []) => {
      const agent = new HttpAgent({
        url: `${address}/api/assistants/${assistant}/ag-ui`, headers, threadId: "recorded", initialMessages: messages,
      });
      const seen = [];
      const { newMessages } = await agent.runAgent(
        { runId, tools },
        { onCustomEvent: ({ event }) => void seen.push(event.name) },
      );
      return { newMessages, seen };
    };
    const asked = [{ id: "u1", role: "user", content: "all teas" }];
    const first = await run("run-1", "tea", asked);
    const pick = { name: "pick", description: "Pick", parameters: { type: "object", properties: {} } };
    const called = await run("run-2", "picks", asked, [pick]);
    const [call] = called.newMessages[0].toolCalls;
    const result = { id: "t1", role: "tool", toolCallId: call.id, content: "green" };
    const last = await run("run-3", "picks", [...asked, ...called.newMessages, result], [pick]);
    return {
      text: first.newMessages[0].content, custom: first.seen, call: call.function.name,
      tools: last.newMessages[0].content,
    };
  },
};

console.log(JSON.stringify(await clients[name]()));
