// Elements out of values. Text becomes text nodes and attributes, never markup, so that a name can be anything; what of it nobody would see is
// shown by its number (visible.ts).
//
// A page builds its whole tree anew on each update; morph() takes over the differences into what is on the screen, so that nothing
// flickers, and focus, selection and scrolling stay. Elements that keep state of their own (charts) are marked with keep() and are moved
// and never rebuilt.

import { visible } from "./visible";

export type Child = Node | string | number | null | undefined | false | Child[];
type Handler = (event: Event) => void;
export interface Attributes {
  // Custom properties for the style sheet, "--share" and the like: the policy of the page forbids style attributes.
  vars?: Record<string, string>;
  on?: Record<string, Handler>;
  [name: string]: unknown;
}

const handlers = new WeakMap<Element, Record<string, Handler>>();
const kept = new WeakSet<Node>();

export function keep<T extends Element>(element: T): T {
  kept.add(element);
  return element;
}

function listen(element: Element, type: string): void {
  element.addEventListener(type, (event) => handlers.get(element)?.[type]?.(event));
}

function setOn(element: Element, on: Record<string, Handler>): void {
  const before = handlers.get(element) ?? {};
  handlers.set(element, on);
  for (const type of Object.keys(on)) if (!(type in before)) listen(element, type);
}

function append(parent: Node, child: Child): void {
  if (child === null || child === undefined || child === false) return;
  if (Array.isArray(child)) {
    for (const one of child) append(parent, one);
  } else {
    parent.appendChild(child instanceof Node ? child : document.createTextNode(visible(String(child))));
  }
}

// Attributes that are read as text; in others, as an address or the value of a choice, every character counts.
const READ = new Set(["title", "aria-label", "data-title", "placeholder"]);

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes?: Attributes | null, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") setOn(element, value as Record<string, Handler>);
    else if (name === "vars") for (const [key, text] of Object.entries(value as Record<string, string>)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? "" : READ.has(name) ? visible(String(value)) : String(value));
  }
  append(element, children);
  return element;
}

function sameKind(a: Node, b: Node): boolean {
  if (kept.has(a) || kept.has(b)) return a === b;
  if (a.nodeType !== b.nodeType) return false;
  if (!(a instanceof Element) || !(b instanceof Element)) return true;
  return a.tagName === b.tagName && a.getAttribute("data-key") === b.getAttribute("data-key");
}

// Attributes that the reader changes by using the page, and that an update leaves alone.
const OF_THE_READER = new Set(["open", "value"]);

function takeOver(from: Node, into: Node): void {
  if (into === from) return;
  if (!(from instanceof HTMLElement) || !(into instanceof HTMLElement)) {
    if (into.nodeValue !== from.nodeValue) into.nodeValue = from.nodeValue;
    return;
  }
  for (const { name } of [...into.attributes]) {
    if (!from.hasAttribute(name) && !OF_THE_READER.has(name)) into.removeAttribute(name);
  }
  for (const { name, value } of [...from.attributes]) {
    if (name === "style") into.style.cssText = from.style.cssText;
    else if (!OF_THE_READER.has(name) && into.getAttribute(name) !== value) into.setAttribute(name, value);
  }
  if (into instanceof HTMLSelectElement && from instanceof HTMLSelectElement) {
    morph(into, [...from.childNodes]);
    if (document.activeElement !== into) into.value = from.value;
    setOn(into, handlers.get(from) ?? {});
    return;
  }
  if (into instanceof HTMLInputElement && from instanceof HTMLInputElement && document.activeElement !== into) into.value = from.value;
  setOn(into, handlers.get(from) ?? {});
  morph(into, [...from.childNodes]);
}

// Makes the children of `parent` like `wanted`: kept elements and those with a data-key are found wherever they are, others are matched in
// order.
export function morph(parent: Node, wanted: Node[]): void {
  let at: ChildNode | null = parent.firstChild;
  for (const node of wanted) {
    let found: ChildNode | null = at;
    while (found && !sameKind(found, node)) found = found.nextSibling;
    if (found === null) {
      parent.insertBefore(node, at);
    } else if (found === at) {
      at = found.nextSibling;
      takeOver(node, found);
    } else {
      parent.insertBefore(found, at);
      takeOver(node, found);
    }
  }
  while (at) {
    const next: ChildNode | null = at.nextSibling;
    parent.removeChild(at);
    at = next;
  }
}
