import assert from "node:assert/strict";
import { test } from "node:test";
import { csv } from "./format";
import { visible } from "./visible";

test("what is not seen is shown by its number", () => {
  assert.equal(visible("train\u202egnp.exe"), "train\\u202egnp.exe");
  assert.equal(visible("a\u200bb\u2066c\u0007d\u{e0041}\ufeff\u00ad"), "a\\u200bb\\u2066c\\u0007d\\u{e0041}\\ufeff\\u00ad");
});

test("what is seen stays: other writings, spaces that numbers have, lines", () => {
  for (const text of ["\u05d0\u05d1\u05d2 \u4e2d\u6587 \ud83d\ude80", "12\u202f345\u00a0UTC", "a\tb\nc", "\\u202e"]) assert.equal(visible(text), text);
});

test("a file shows them as well", () => {
  assert.equal(csv([["job\u202egpj", "a,\u200bb", 1]]), 'job\\u202egpj,"a,\\u200bb",1\r\n');
});
