// Texts of the drawing that end where their place does.

import { svg } from "./dom.js";

const pen = document.createElement("canvas").getContext("2d");

/** As much of a text as there is room for, with a sign that there is more; `size` is that of its letters. */
export function fitted(words, width, size) {
  pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  const fits = (text) => pen.measureText(text).width <= width;
  if (fits(words)) return words;
  let [shown, tooLong] = [0, words.length];
  while (tooLong - shown > 1) {
    const half = (shown + tooLong) >> 1;
    if (fits(`${words.slice(0, half)}…`)) shown = half;
    else tooLong = half;
  }
  return `${words.slice(0, shown)}…`;
}

/** A text that is no wider than `width`; where some of it is left out, the whole is its title. */
export function fittedText(attributes, words, width, size) {
  const shown = fitted(words, width, size);
  return svg("text", attributes, shown, shown === words ? null : svg("title", {}, words));
}
