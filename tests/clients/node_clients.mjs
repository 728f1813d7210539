// What a page or a Node program does with a client: `node node_clients.mjs NAME ADDRESS KEY` prints
// what it saw as JSON. The modules are those of package.json beside it.
import { HttpAgent } from "@ag-ui/client";
import { Chat } from "@ai-sdk/react";
import { createOpenAI } from "@ai-sdk/openai";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import OpenAI from "openai";
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
  async "openai-node"() {
    const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: key });
    const messages = [{ role: "user", content: "all teas" }];
    const titles = (notes) => notes.map((note) => note.url_citation?.title ?? note.title);
    const whole = (await client.chat.completions.create({ model: "tea", messages })).choices[0].message;
    const stream = client.chat.completions.stream({ model: "tea", messages });
    const { message } = (await stream.finalChatCompletion()).choices[0];
    const schema = {
      type: "object", properties: { teas: { type: "array", items: { type: "string" } } },
      required: ["teas"], additionalProperties: false,
    };
    const form = await client.chat.completions.parse({
      model: "json", messages, response_format: { type: "json_schema", json_schema: { name: "teas", schema, strict: true } },
    });
    const pick = {
      type: "function",
      function: { name: "pick", parse: JSON.parse, parameters: { type: "object", properties: {} }, function: () => "green" },
    };
    const tools = client.chat.completions.runTools({ model: "picks", messages, tools: [pick] });
    const answer = await client.responses.stream({ model: "tea", input: "all teas" }).finalResponse();
    return {
      text: whole.content, sources: titles(whole.annotations), stream: message.content,
      streamedSources: titles(message.annotations), object: form.choices[0].message.parsed,
      tools: await tools.finalContent(), responses: answer.output_text,
      responsesSources: titles(answer.output.at(-1).content[0].annotations),
    };
  },
  async "mcp-node"() {
    const client = new Client({ name: "recorded", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${address}/mcp?assistant=tea`), { requestInit: { headers } }));
    const { tools } = await client.listTools();
    const instructions = client.getInstructions() ?? "";
    const steps = [];
    const answer = await client.callTool(
      { name: "ask", arguments: { question: "all teas" } }, undefined,
      { onprogress: (step) => void steps.push(step.message) },
    );
    await client.close();
    return {
      tools: tools.map((each) => each.name).includes("ask"), text: answer.content[0].text, steps,
      sources: answer.structuredContent.citations.map((each) => each.title),
      told: instructions.includes("- tea: Tea. All about tea"), claims: answer.structuredContent.claims.cited,
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
