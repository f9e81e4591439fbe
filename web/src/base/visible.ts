// Characters that nobody sees and that change how the rest is read: control characters, marks that turn the direction of writing, joiners and
// spaces without width, fillers, tags. A name with one looks like another name, so that each is shown by its number. Line ends and tabs stay.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

function byNumber(character: string): string {
  const hex = (character.codePointAt(0) ?? 0).toString(16);
  return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, "0")}`;
}

export function visible(text: string): string {
  return text.replaceAll(UNSEEN, byNumber);
}
