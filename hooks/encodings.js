// atob, btoa, TextEncoder and TextDecoder, which the bare engine lacks. Evaluated when a hook first asks for one of them; the
// value is a function of the name. Only UTF-8 is offered.
(function () {
  "use strict";
  const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

  function btoa(data) {
    const text = String(data);
    let out = "";
    for (let i = 0; i < text.length; i += 3) {
      let bits = 0;
      for (let j = i; j < i + 3; j++) {
        const code = j < text.length ? text.charCodeAt(j) : 0;
        if (code > 255) throw new TypeError("btoa: only characters up to U+00FF can be encoded");
        bits = (bits << 8) | code;
      }
      out += ALPHABET[bits >> 18] + ALPHABET[(bits >> 12) & 63];
      out += (i + 1 < text.length ? ALPHABET[(bits >> 6) & 63] : "=") + (i + 2 < text.length ? ALPHABET[bits & 63] : "=");
    }
    return out;
  }

  function atob(data) {
    let text = String(data).replace(/[ \t\n\f\r]/g, "");
    if (text.length % 4 === 0) text = text.replace(/==?$/, "");
    let out = "", bits = 0;
    for (let i = 0; i < text.length; i++) {
      const digit = ALPHABET.indexOf(text[i]);
      if (digit < 0) throw new TypeError("atob: this is not base64");
      bits = ((bits << 6) | digit) & 0xffffff;
      if (i % 4 !== 0) out += String.fromCharCode((bits >> (6 - 2 * (i % 4))) & 255);
    }
    if (text.length % 4 === 1) throw new TypeError("atob: this is not base64");
    return out;
  }

  class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(data) {
      const text = (data === undefined ? "" : String(data)).toWellFormed();
      const bytes = [];
      for (const char of text) {
        const code = char.codePointAt(0);
        if (code < 0x80) {
          bytes.push(code);
          continue;
        }
        const more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        bytes.push(((0xff00 >> (more + 1)) & 0xff) | (code >> (6 * more)));
        for (let shift = 6 * (more - 1); shift >= 0; shift -= 6) bytes.push(0x80 | ((code >> shift) & 63));
      }
      return new Uint8Array(bytes);
    }
  }

  class TextDecoder {
    constructor(label) {
      const name = label === undefined ? "utf-8" : String(label).toLowerCase();
      if (name !== "utf-8" && name !== "utf8") throw new TypeError("TextDecoder: only utf-8 is offered, not " + name);
    }
    get encoding() { return "utf-8"; }
    decode(data) {
      if (data === undefined) return "";
      const bytes = ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
      let out = "", i = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
      while (i < bytes.length) {
        const first = bytes[i++];
        if (first < 0x80) {
          out += String.fromCharCode(first);
          continue;
        }
        const more = first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xf0 && first < 0xf5 ? 3 : 0;
        // The second byte's range keeps out overlong forms, surrogates and what lies beyond U+10FFFF.
        let least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
        let most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
        let code = first & (0x3f >> more), read = 0;
        while (read < more && bytes[i] >= least && bytes[i] <= most) {
          code = (code << 6) | (bytes[i++] & 63);
          read++;
          least = 0x80;
          most = 0xbf;
        }
        out += more === 0 || read < more ? "\ufffd" : String.fromCodePoint(code);
      }
      return out;
    }
  }

  return { btoa, atob, TextEncoder, TextDecoder };
})
