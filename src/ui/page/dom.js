// Elements without markup in strings: text is always text.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return element;
}

/** An HTML element; attributes that begin with `on` are listeners. */
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An element of SVG. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Puts these in place of whatever is in an element. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== undefined && child !== null));
}

/** Puts a text into an element, if it is another one: what is drawn already costs nothing. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Calls at most once in so many milliseconds, and once after the last. */
export function calmly(milliseconds, act) {
  let waiting = null;
  return () => {
    waiting ??= setTimeout(() => {
      waiting = null;
      act();
    }, milliseconds);
  };
}

/** A label with its control in it. */
export function labelled(text, control) {
  return el("label", {}, el("span", {}, text), control);
}

/** Puts what `make` makes in place of whatever is in an element, if what it is made of has changed: what has the
 * focus keeps it while nothing changes. */
export function showChanged(element, of, make) {
  const key = JSON.stringify(of);
  if (element.kubariumKey === key) return;
  element.kubariumKey = key;
  show(element, make());
}
