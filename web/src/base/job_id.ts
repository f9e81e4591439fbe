// A job as the API's paths have it, "train@ml": other characters than letters, digits, '-', '_' and '.' are "~" and two hexadecimal digits
// of their UTF-8 bytes. The counterpart of src/jobs/job_name.cc.

function escaped(name: string): string {
  let out = "";
  for (const byte of new TextEncoder().encode(name)) {
    const letter = String.fromCharCode(byte);
    out += /[A-Za-z0-9._-]/.test(letter) ? letter : `~${byte.toString(16).padStart(2, "0")}`;
  }
  return out;
}

export function jobId(job: string, name_space: string | null): string {
  return name_space ? `${escaped(job)}@${escaped(name_space)}` : escaped(job);
}

// Back, for a title.
export function jobName(id: string): string {
  const bytes = id.replaceAll(/~([0-9a-fA-F]{2})/g, (_, hex: string) => `%${hex}`);
  try {
    return decodeURIComponent(bytes);
  } catch {
    return id;
  }
}
