// Globals of the web platform that the bare engine lacks: URL, URLSearchParams, structuredClone. A
// function of the text encodings; loaded when one of them is first used.
//
// URL follows the WHATWG URL standard (https://url.spec.whatwg.org). Host names become ASCII by
// NFKC, lower case and Punycode (RFC 3492), which agrees with the standard's UTS #46 on names that
// can be registered.
(function (encodings) {
  "use strict";
  const { TextEncoder, TextDecoder } = encodings;
  const PORTS = { __proto__: null, http: 80, https: 443, ws: 80, wss: 443, ftp: 21, file: null };
  const special = (url) => url.scheme in PORTS;
  const BREAKS = /[\t\n\r]/g;
  const text = (value) => String(value).toWellFormed();
  const bad = (what) => new TypeError(what);

  // ---- percent-encoding

  const CONTROL = "";
  const FRAGMENT = ' "<>`';
  const QUERY = ' "#<>';
  const PATH = QUERY + "?^`{}";
  const USERINFO = PATH + "/:;=@[\\]|";

  function encode(text, set) {
    let out = "";
    for (const char of text.toWellFormed()) {
      if (char > "~") out += char === "\x7f" ? "%7F" : encodeURIComponent(char);
      else if (char < " " || set.includes(char))
        out += "%" + char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");
      else out += char;
    }
    return out;
  }

  function decode(text) {
    if (!text.includes("%")) return text;
    const bytes = [];
    const raw = new TextEncoder().encode(text);
    for (let i = 0; i < raw.length; i++) {
      const hex = raw[i] === 37 ? String.fromCharCode(raw[i + 1], raw[i + 2]) : "";
      if (/^[0-9a-fA-F]{2}$/.test(hex)) {
        bytes.push(parseInt(hex, 16));
        i += 2;
      } else {
        bytes.push(raw[i]);
      }
    }
    return new TextDecoder().decode(new Uint8Array(bytes));
  }

  // ---- hosts

  // RFC 3492, section 6.3, with its variable names.
  function punycode(label) {
    const input = Array.from(label, (char) => char.codePointAt(0));
    const basic = input.filter((code) => code < 128);
    let out = String.fromCharCode(...basic) + (basic.length ? "-" : "");
    let n = 128,
      delta = 0,
      bias = 72,
      handled = basic.length;
    const digit = (value) => String.fromCharCode(value < 26 ? value + 97 : value + 22);
    while (handled < input.length) {
      const next = Math.min(...input.filter((code) => code >= n));
      delta += (next - n) * (handled + 1);
      n = next;
      for (const code of input) {
        if (code < n) delta++;
        if (code !== n) continue;
        let q = delta;
        for (let k = 36; ; k += 36) {
          const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
          if (q < t) break;
          out += digit(t + ((q - t) % (36 - t)));
          q = Math.floor((q - t) / (36 - t));
        }
        out += digit(q);
        delta = Math.floor(delta / (handled === basic.length ? 700 : 2));
        handled++;
        delta += Math.floor(delta / handled);
        let k = 0;
        for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
        bias = k + Math.floor((36 * delta) / (delta + 38));
        delta = 0;
      }
      delta++;
      n++;
    }
    return "xn--" + out;
  }

  function ipv4Number(text) {
    if (/^0[xX][0-9a-fA-F]*$/.test(text)) return text.length === 2 ? 0 : parseInt(text, 16);
    if (/^0[0-7]+$/.test(text)) return parseInt(text, 8);
    return /^(0|[1-9][0-9]*)$/.test(text) ? parseInt(text, 10) : NaN;
  }

  // Return the four numbers of an address, null when the name does not end in a number.
  function ipv4(name) {
    const parts = name.split(".");
    if (parts.length > 1 && parts[parts.length - 1] === "") parts.pop();
    const last = parts[parts.length - 1];
    if (!/^[0-9]+$/.test(last) && !/^0[xX][0-9a-fA-F]*$/.test(last)) return null;
    const numbers = parts.map(ipv4Number);
    const end = numbers.pop();
    const room = 256 ** (4 - numbers.length);
    if (numbers.length > 3 || !(end < room) || !numbers.every((number) => number < 256))
      throw bad("is not an IPv4 address");
    let value = end;
    numbers.forEach((number, i) => {
      value += number * 256 ** (3 - i);
    });
    return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256);
  }

  function ipv6(text) {
    const no = bad("is not an IPv6 address");
    const halves = text.split("::");
    if (halves.length > 2) throw no;
    const pieces = halves.map((half) => (half === "" ? [] : half.split(":")));
    const tail = pieces[pieces.length - 1];
    if (tail.length && tail[tail.length - 1].includes(".")) {
      const dotted = tail.pop();
      if (!/^(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){3}$/.test(dotted)) throw no;
      const four = dotted.split(".").map(Number);
      if (four.some((number) => number > 255)) throw no;
      tail.push((four[0] * 256 + four[1]).toString(16), (four[2] * 256 + four[3]).toString(16));
    }
    const count = pieces[0].length + (pieces[1] ?? []).length;
    if (pieces.length === 1 ? count !== 8 : count > 7) throw no;
    const all =
      pieces.length === 1 ? pieces[0] : [...pieces[0], ...Array(8 - count).fill("0"), ...pieces[1]];
    if (!all.every((piece) => /^[0-9a-fA-F]{1,4}$/.test(piece))) throw no;
    const shown = all.map((piece) => parseInt(piece, 16).toString(16));
    let from = 0,
      longest = 1;
    for (let i = 0; i < 8; i++) {
      let end = i;
      while (shown[end] === "0") end++;
      if (end - i > longest) [from, longest] = [i, end - i];
    }
    if (longest === 1) return "[" + shown.join(":") + "]";
    return (
      "[" + shown.slice(0, from).join(":") + "::" + shown.slice(from + longest).join(":") + "]"
    );
  }

  function parseHost(text, isSpecial) {
    if (text.startsWith("[")) {
      if (!text.endsWith("]")) throw bad("has a host with [ and no ]");
      return ipv6(text.slice(1, -1));
    }
    if (!isSpecial) {
      if (/[\0\t\n\r #/:<>?@[\\\]^|]/.test(text))
        throw bad("has a character in its host that no host has");
      return encode(text, CONTROL);
    }
    const name = decode(text)
      .normalize("NFKC")
      .toLowerCase()
      .replace(/[\u00ad\u200b\u2060\ufeff]/g, "")
      .replace(/[\u3002\uff0e\uff61]/g, ".");
    const ascii = name
      .split(".")
      .map((label) => (/[^\0-\x7f]/.test(label) ? punycode(label) : label))
      .join(".");
    if (ascii === "") throw bad("has no host");
    if (/[\0-\x20#%/:<>?@[\\\]^|\x7f\ufffd]/.test(name + ascii))
      throw bad("has a character in its host that no host has");
    const address = ipv4(ascii);
    return address === null ? ascii : address.join(".");
  }

  // ---- parsing

  const isDrive = (text) => /^[a-zA-Z][:|]$/.test(text);
  const startsWithDrive = (text) => /^[a-zA-Z][:|]([/\\]|$)/.test(text);

  function shorten(url) {
    if (url.scheme === "file" && url.path.length === 1 && /^[a-zA-Z]:$/.test(url.path[0])) return;
    url.path.pop();
  }

  function addPath(url, text) {
    const slash = special(url) ? /[/\\]/ : /\//;
    if (text === "" && !special(url)) return;
    const segments = (slash.test(text[0] ?? "") ? text.slice(1) : text).split(slash);
    segments.forEach((segment, i) => {
      const last = i === segments.length - 1;
      const dots = segment.replace(/%2e/gi, ".");
      if (dots === "..") {
        shorten(url);
        if (last) url.path.push("");
      } else if (dots === ".") {
        if (last) url.path.push("");
      } else if (url.scheme === "file" && url.path.length === 0 && isDrive(segment)) {
        url.path.push(segment[0] + ":");
      } else {
        url.path.push(encode(segment, PATH));
      }
    });
  }

  function setPort(url, text) {
    if (!/^[0-9]*$/.test(text) || +text > 65535) throw bad("has no port between 0 and 65535");
    url.port = text === "" || +text === PORTS[url.scheme] ? null : +text;
  }

  function split(text) {
    const found = /^((?:\[[^\]]*(?:\]|$)|[^:[])*)(?::(.*))?$/s.exec(text);
    return [found[1], found[2]];
  }

  function addAuthority(url, text) {
    const end = text.search(special(url) ? /[/\\]/ : /\//);
    const authority = end < 0 ? text : text.slice(0, end);
    const at = authority.lastIndexOf("@");
    if (at >= 0) {
      const [, name, password] = /^([^:]*)(?::(.*))?$/s.exec(authority.slice(0, at));
      url.username = encode(name, USERINFO);
      url.password = encode(password ?? "", USERINFO);
    }
    const [host, port] = split(authority.slice(at + 1));
    if (host === "" && (special(url) || at >= 0 || port !== undefined)) throw bad("has no host");
    url.host = host === "" ? "" : parseHost(host, special(url));
    setPort(url, port ?? "");
    addPath(url, end < 0 ? "" : text.slice(end));
  }

  function addFile(url, text, base) {
    url.host = "";
    if (/^[/\\]{2}/.test(text)) {
      const rest = text.slice(2),
        end = rest.search(/[/\\]/);
      const host = end < 0 ? rest : rest.slice(0, end);
      if (isDrive(host)) return addPath(url, rest);
      const parsed = host === "" ? "" : parseHost(host, true);
      url.host = parsed === "localhost" ? "" : parsed;
      return addPath(url, end < 0 ? "" : rest.slice(end));
    }
    if (base?.scheme !== "file") return addPath(url, text);
    url.host = base.host;
    if (/^[/\\]/.test(text)) {
      if (!startsWithDrive(text.slice(1)) && /^[a-zA-Z]:$/.test(base.path[0] ?? ""))
        url.path.push(base.path[0]);
      return addPath(url, text);
    }
    return addRelative(url, text, base);
  }

  function addRelative(url, text, base) {
    if (text === "") {
      url.path = base.path.slice();
      url.query ??= base.query;
      return;
    }
    if (!(url.scheme === "file" && startsWithDrive(text))) {
      url.path = base.path.slice();
      shorten(url);
    }
    addPath(url, text);
  }

  function parse(input, base) {
    const text = input.replace(/^[\0-\x20]+|[\0-\x20]+$/g, "").replace(BREAKS, "");
    const [, before, query, fragment] = /^([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(text);
    const found = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(before);
    const url = {
      scheme: "",
      username: "",
      password: "",
      host: null,
      port: null,
      path: [],
      query: query ?? null,
      fragment: null,
    };
    let rest = before;
    if (found !== null) {
      url.scheme = found[1].toLowerCase();
      rest = before.slice(found[0].length);
    } else if (base === undefined) {
      throw bad("has no scheme and there is no base");
    } else {
      url.scheme = base.scheme;
    }
    if (found === null && typeof base.path === "string" && !text.startsWith("#"))
      throw bad("is relative to a base that has no path of its own");
    follow(url, rest, base, found !== null);
    if (url.query !== null && query !== undefined)
      url.query = encode(query, special(url) ? QUERY + "'" : QUERY);
    if (fragment !== undefined) url.fragment = encode(fragment, FRAGMENT);
    return url;
  }

  function follow(url, rest, base, absolute) {
    if (!absolute && typeof base.path === "string")
      return void Object.assign(url, { path: base.path, query: base.query });
    if (url.scheme === "file") return addFile(url, rest, base);
    if (absolute && special(url) && !(base?.scheme === url.scheme && !rest.startsWith("//"))) {
      return addAuthority(url, rest.replace(/^[/\\]*/, ""));
    }
    if (absolute && !special(url)) {
      if (rest.startsWith("//")) return addAuthority(url, rest.slice(2));
      return void (rest.startsWith("/") ? addPath(url, rest) : (url.path = encode(rest, CONTROL)));
    }
    if (special(url) && /^[/\\]{2}/.test(rest))
      return addAuthority(url, rest.replace(/^[/\\]*/, ""));
    if (rest.startsWith("//")) return addAuthority(url, rest.slice(2));
    for (const own of ["username", "password", "host", "port"]) url[own] = base[own];
    const rooted = rest.startsWith("/") || (special(url) && rest.startsWith("\\"));
    return rooted ? addPath(url, rest) : addRelative(url, rest, base);
  }

  // ---- writing

  const written = (url) =>
    typeof url.path === "string" ? url.path : url.path.map((segment) => "/" + segment).join("");
  const shownHost = (url) =>
    url.host === null ? "" : url.host + (url.port === null ? "" : ":" + url.port);

  function whole(url) {
    const user = url.username + (url.password === "" ? "" : ":" + url.password);
    const authority = "//" + (user === "" ? "" : user + "@") + shownHost(url);
    const guard =
      url.host === null && url.path.length > 1 && url.path[0] === "" && typeof url.path !== "string"
        ? "/."
        : "";
    return (
      url.scheme +
      ":" +
      (url.host === null ? guard : authority) +
      written(url) +
      (url.query === null ? "" : "?" + url.query) +
      (url.fragment === null ? "" : "#" + url.fragment)
    );
  }

  // ---- URLSearchParams

  const formEncoded = (text) =>
    encodeURIComponent(text.toWellFormed())
      .replace(/%20/g, "+")
      .replace(/[!'()~]/g, (char) => "%" + char.charCodeAt(0).toString(16).toUpperCase());

  function pairsOf(text) {
    return text
      .split("&")
      .filter(Boolean)
      .map((part) => {
        const at = part.indexOf("=");
        const both = at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)];
        return both.map((one) => decode(one.replace(/\+/g, " ")));
      });
  }

  class URLSearchParams {
    #pairs = [];
    #changed = () => {};

    constructor(init = "") {
      if (
        typeof init === "object" &&
        init !== null &&
        typeof init[Symbol.iterator] === "function"
      ) {
        for (const pair of init) {
          const both = Array.from(pair, text);
          if (both.length !== 2)
            throw bad("URLSearchParams: each pair must have two entries, not " + both.length);
          this.#pairs.push(both);
        }
      } else if (typeof init === "object" && init !== null) {
        for (const name of Object.keys(init)) this.#pairs.push([text(name), text(init[name])]);
      } else {
        this.#pairs = pairsOf(text(init).replace(/^\?/, ""));
      }
    }

    static follow(params, query, changed) {
      params.#pairs = pairsOf(query);
      params.#changed = changed;
    }

    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      this.#pairs.push([text(name), text(value)]);
      this.#changed();
    }
    delete(name, value) {
      this.#pairs = this.#pairs.filter(
        (pair) => pair[0] !== text(name) || (value !== undefined && pair[1] !== text(value)),
      );
      this.#changed();
    }
    get(name) {
      return this.#pairs.find((pair) => pair[0] === text(name))?.[1] ?? null;
    }
    getAll(name) {
      return this.#pairs.filter((pair) => pair[0] === text(name)).map((pair) => pair[1]);
    }
    has(name, value) {
      return this.#pairs.some(
        (pair) => pair[0] === text(name) && (value === undefined || pair[1] === text(value)),
      );
    }
    set(name, value) {
      const at = this.#pairs.findIndex((pair) => pair[0] === text(name));
      if (at < 0) return this.append(name, value);
      this.#pairs = this.#pairs.filter((pair, i) => i <= at || pair[0] !== text(name));
      this.#pairs[at] = [text(name), text(value)];
      this.#changed();
    }
    sort() {
      this.#pairs.sort((one, other) => (one[0] < other[0] ? -1 : one[0] > other[0] ? 1 : 0));
      this.#changed();
    }
    forEach(each, self) {
      for (const [name, value] of this.#pairs) each.call(self, value, name, this);
    }
    *entries() {
      for (const pair of this.#pairs) yield [pair[0], pair[1]];
    }
    *keys() {
      for (const pair of this.#pairs) yield pair[0];
    }
    *values() {
      for (const pair of this.#pairs) yield pair[1];
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      return this.#pairs.map((pair) => pair.map(formEncoded).join("=")).join("&");
    }
    get [Symbol.toStringTag]() {
      return "URLSearchParams";
    }
  }
  const { follow: followed } = URLSearchParams;
  delete URLSearchParams.follow;

  // ---- URL

  class URL {
    #url;
    #params = new URLSearchParams();

    constructor(input, base) {
      this.#url = read(input, base);
      this.#follow();
    }

    static canParse(input, base) {
      return URL.parse(input, base) !== null;
    }
    static parse(input, base) {
      try {
        return new URL(input, base);
      } catch {
        return null;
      }
    }

    #follow() {
      followed(this.#params, this.#url.query ?? "", () => {
        this.#url.query = this.#params.toString() || null;
      });
    }

    // A part that is not valid leaves the URL unchanged.
    #attempt(change) {
      const copy = {
        ...this.#url,
        path: typeof this.#url.path === "string" ? this.#url.path : this.#url.path.slice(),
      };
      try {
        change(copy);
      } catch {
        return false;
      }
      this.#url = copy;
      return true;
    }

    #setHost(value, withPort) {
      if (typeof this.#url.path === "string") return;
      const given = value
        .replace(BREAKS, "")
        .replace(special(this.#url) ? /[/\\?#].*$/s : /[/?#].*$/s, "");
      const isFile = this.#url.scheme === "file";
      const [host, port] = isFile ? [given] : split(given);
      const done = this.#attempt((url) => {
        if (host === "" && (special(url) ? !isFile : url.username !== "" || url.port !== null))
          throw bad("has no host");
        if (!withPort && port !== undefined) throw bad("has a port where only a host can be");
        url.host =
          host === "" || (isFile && host === "localhost") ? "" : parseHost(host, special(url));
      });
      if (done && port !== undefined) this.#setPort(port);
    }

    #setPort(given) {
      const digits = /^[0-9]*/.exec(given)[0];
      if (digits !== "") this.#attempt((url) => setPort(url, digits));
    }

    get #withoutPort() {
      return this.#url.host === null || this.#url.host === "" || this.#url.scheme === "file";
    }

    get href() {
      return whole(this.#url);
    }
    set href(text) {
      this.#url = read(text);
      this.#follow();
    }
    get origin() {
      const { scheme, path } = this.#url;
      if (scheme === "blob" && typeof path === "string" && /^https?:/.test(path))
        return URL.parse(path)?.origin ?? "null";
      return special(this.#url) && scheme !== "file"
        ? scheme + "://" + shownHost(this.#url)
        : "null";
    }
    get protocol() {
      return this.#url.scheme + ":";
    }
    set protocol(text) {
      const found = /^([a-zA-Z][a-zA-Z0-9+.-]*)(?::|$)/.exec(String(text).replace(BREAKS, ""));
      if (found === null) return;
      const scheme = found[1].toLowerCase(),
        url = this.#url;
      if (
        scheme in PORTS !== special(url) ||
        (scheme === "file" && (url.username !== "" || url.port !== null))
      )
        return;
      if (url.scheme === "file" && url.host === "") return;
      url.scheme = scheme;
      if (url.port === PORTS[scheme]) url.port = null;
    }
    get username() {
      return this.#url.username;
    }
    set username(text) {
      if (!this.#withoutPort) this.#url.username = encode(String(text), USERINFO);
    }
    get password() {
      return this.#url.password;
    }
    set password(text) {
      if (!this.#withoutPort) this.#url.password = encode(String(text), USERINFO);
    }
    get host() {
      return shownHost(this.#url);
    }
    set host(text) {
      this.#setHost(String(text), true);
    }
    get hostname() {
      return this.#url.host ?? "";
    }
    set hostname(text) {
      this.#setHost(String(text), false);
    }
    get port() {
      return this.#url.port === null ? "" : String(this.#url.port);
    }
    set port(text) {
      if (this.#withoutPort) return;
      if (String(text) === "") this.#url.port = null;
      else this.#setPort(String(text).replace(BREAKS, ""));
    }
    get pathname() {
      return written(this.#url);
    }
    set pathname(text) {
      if (typeof this.#url.path === "string") return;
      this.#url.path = [];
      if (String(text) === "" && this.#url.host === null) this.#url.path.push("");
      addPath(
        this.#url,
        String(text)
          .replace(BREAKS, "")
          .replace(/[?#]/g, (char) => (char === "?" ? "%3F" : "%23")),
      );
    }
    get search() {
      return this.#url.query ? "?" + this.#url.query : "";
    }
    set search(text) {
      const query = String(text).replace(/^\?/, "").replace(BREAKS, "");
      this.#url.query =
        String(text) === "" ? null : encode(query, special(this.#url) ? QUERY + "'" : QUERY);
      this.#follow();
    }
    get searchParams() {
      return this.#params;
    }
    get hash() {
      return this.#url.fragment ? "#" + this.#url.fragment : "";
    }
    set hash(text) {
      const fragment = String(text).replace(/^#/, "").replace(BREAKS, "");
      this.#url.fragment = String(text) === "" ? null : encode(fragment, FRAGMENT);
    }
    toString() {
      return this.href;
    }
    toJSON() {
      return this.href;
    }
    get [Symbol.toStringTag]() {
      return "URL";
    }
  }

  function read(input, base) {
    const text = String(input);
    let of = "";
    try {
      if (base === undefined) return parse(text);
      of = " with base '" + base + "'";
      return parse(text, parse(String(base)));
    } catch (error) {
      throw bad("Invalid URL: '" + text + "'" + of + " " + error.message);
    }
  }

  // ---- structuredClone

  // StructuredSerialize of the HTML standard, for the values that a hook can hold; nothing is
  // transferred.
  const ERRORS = {
    __proto__: null,
    Error,
    EvalError,
    RangeError,
    ReferenceError,
    SyntaxError,
    TypeError,
    URIError,
  };
  const kind = (value) => Object.prototype.toString.call(value).slice(8, -1);

  function refuse(what) {
    const error = new Error(what + " could not be cloned.");
    error.name = "DataCloneError";
    error.code = 25;
    throw error;
  }

  function cloned(value, seen) {
    if (typeof value === "symbol" || typeof value === "function") refuse(String(value));
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (copy) => (seen.set(value, copy), copy);
    if (
      value instanceof Boolean ||
      value instanceof Number ||
      value instanceof String ||
      value instanceof BigInt
    ) {
      return keep(Object(value.valueOf()));
    }
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const length = value instanceof DataView ? value.byteLength : value.length;
      return keep(new value.constructor(cloned(value.buffer, seen), value.byteOffset, length));
    }
    if (value instanceof Map) {
      const copy = keep(new Map());
      for (const [key, entry] of [...value]) copy.set(cloned(key, seen), cloned(entry, seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      for (const entry of [...value]) copy.add(cloned(entry, seen));
      return copy;
    }
    if (value instanceof Error) {
      const copy = keep(Object.create((ERRORS[value.name] ?? Error).prototype));
      for (const own of ["stack", "message", "cause"]) {
        if (Object.hasOwn(value, own))
          Object.defineProperty(copy, own, {
            value: cloned(value[own], seen),
            writable: true,
            configurable: true,
          });
      }
      return copy;
    }
    if (
      value instanceof Promise ||
      value instanceof WeakMap ||
      value instanceof WeakSet ||
      value instanceof WeakRef
    )
      refuse("#<" + kind(value) + ">");
    const copy = keep(Array.isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value)) copy[key] = cloned(value[key], seen);
    return copy;
  }

  function structuredClone(value, options) {
    if (arguments.length === 0) throw bad("structuredClone: there is nothing to clone");
    if (options?.transfer?.length)
      throw bad(
        "structuredClone: transfer is not offered by this host: leave it out, and a copy is made",
      );
    return cloned(value, new Map());
  }

  return { __proto__: null, URL, URLSearchParams, structuredClone };
})
