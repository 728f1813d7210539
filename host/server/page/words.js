// @ts-check
/**
 * The words of the conversation in the reader's language. Where a word is shown it is written in
 * English, which is its key in the files of the other languages (`words-de.js`).
 */

const LANGUAGES = ["ar", "de", "en", "es", "fr", "he"];

/** The language of all conversations of a page: that of the element, else of the site. */
export const LANGUAGE = chosen();
export const DIRECTION = ["ar", "he"].includes(LANGUAGE) ? "rtl" : "ltr";

/** @type {Record<string, string | Record<string, string>>} */
const TRANSLATED = LANGUAGE === "en" ? {} : (await import(`./words-${LANGUAGE}.js`)).default;
const PLURALS = new Intl.PluralRules(LANGUAGE);

function chosen() {
  const element = document.querySelector("groundhook-chat[locale]")?.getAttribute("locale");
  const { dataset, lang } = document.documentElement;
  // The page of the server speaks the language of its reader, a page of a site its own.
  const others = dataset.language === "reader" ? navigator.languages : [lang || navigator.language];
  const bases = [element ?? "", ...others].map((tag) => tag.toLowerCase().split("-")[0]);
  return bases.find((base) => LANGUAGES.includes(base)) ?? "en";
}

/**
 * Return a text in the reader's language.
 * @param {string} text in English, with `{name}` for each of the values
 * @param {Record<string, string | number>} [values]
 */
export function t(text, values = {}) {
  const said = TRANSLATED[text];
  return filled(typeof said === "string" ? said : text, values);
}

/**
 * Return a text with a number, which is its value `n`.
 * @param {number} n
 * @param {string} one in English, for 1
 * @param {string} other in English, for other numbers
 * @param {Record<string, string | number>} [values]
 */
export function tn(n, one, other, values = {}) {
  const forms = TRANSLATED[other];
  const said = typeof forms === "object" ? (forms[PLURALS.select(n)] ?? forms.other) : n === 1 ? one : other;
  return filled(said, { ...values, n });
}

/**
 * @param {string} text
 * @param {Record<string, string | number>} values
 */
function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name] ?? whole;
    return typeof value === "number" ? value.toLocaleString(LANGUAGE) : value;
  });
}
