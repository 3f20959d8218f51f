// Passes a poke on to the function host, for those who can reach Supabase and not the host.
import { createHash, timingSafeEqual } from "node:crypto";

const SECRET_HEADER = "x-edge-function-secret";
const BODY_LIMIT = 64 * 1024;
// Below pg_net's patience of 10 s, so that it is told what happened.
const TIMEOUT_MS = 8_000;
// What of the host's answer is the caller's business.
const PASSED_HEADERS = ["content-type", "retry-after"];

export type Environment = (name: string) => string | undefined;

/** A handler for `Deno.serve`. Whoever has no secret learns nothing, and the host hears nothing. */
export function forwardPokes(
  name: string,
  environment: Environment = (variable) => Deno.env.get(variable),
  timeoutMs = TIMEOUT_MS,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const secrets = secretsOf(environment);
    const target = targetOf(environment, name);
    if (secrets.length === 0 || target === null) {
      const missing = secrets.length === 0 ? "EDGE_FUNCTION_SECRET" : "FAIRLEASE_HOST_URL";
      log(name, `${missing} is not set, or malformed; set it with: supabase secrets set`);
      return refused(503, "this function is not configured; its log says why");
    }
    const secret = request.headers.get(SECRET_HEADER) ?? "";
    if (!opens(secrets, secret)) return refused(401, `wrong or missing ${SECRET_HEADER}`);
    if (request.method !== "POST") {
      return refused(405, "poke a function with POST", { allow: "POST" });
    }
    const body = await bounded(request);
    if (body === null) return refused(413, `a poke carries at most ${BODY_LIMIT} bytes`);
    return await forward(name, target, secret, body, timeoutMs);
  };
}

async function forward(
  name: string,
  target: URL,
  secret: string,
  body: Uint8Array<ArrayBuffer>,
  timeoutMs: number,
): Promise<Response> {
  try {
    const answer = await fetch(target, {
      method: "POST",
      headers: { [SECRET_HEADER]: secret, "content-type": "application/json" },
      body,
      // A redirect would carry the secret to wherever it points.
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await answer.text();
    if (answer.status >= 300 && answer.status < 400) {
      log(name, `${target.host} redirects; set FAIRLEASE_HOST_URL to where it points`);
      return refused(502, "the function host redirects");
    }
    const kept = PASSED_HEADERS.flatMap((header) => {
      const value = answer.headers.get(header);
      return value === null ? [] : [[header, value] as [string, string]];
    });
    return new Response(text, { status: answer.status, headers: kept });
  } catch (error) {
    const late = error instanceof DOMException && error.name === "TimeoutError";
    const what = late ? `did not answer within ${timeoutMs} ms` : "cannot be reached";
    log(name, `${target.host} ${what}`);
    return refused(late ? 504 : 502, `the function host ${what}; poke again`);
  }
}

function secretsOf(environment: Environment): string[] {
  const given = environment("EDGE_FUNCTION_SECRET") ?? "";
  return given.split(",").map((one) => one.trim()).filter((one) => one !== "");
}

function targetOf(environment: Environment, name: string): URL | null {
  const base = (environment("FAIRLEASE_HOST_URL") ?? "").trim().replace(/\/+$/, "");
  if (!URL.canParse(base)) return null;
  const target = new URL(`${base}/functions/v1/${name}`);
  return /^https?:$/.test(target.protocol) && target.username === "" ? target : null;
}

/** Every secret is compared, each in constant time, over digests of one length. */
function opens(secrets: string[], given: string): boolean {
  const digest = sha256(given);
  return secrets.map((secret) => timingSafeEqual(sha256(secret), digest)).includes(true);
}

function sha256(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}

/** null: more than the limit, of which no more than that is read. */
async function bounded(request: Request): Promise<Uint8Array<ArrayBuffer> | null> {
  if (Number(request.headers.get("content-length")) > BODY_LIMIT) return null;
  const body = new Uint8Array(BODY_LIMIT);
  let size = 0;
  for await (const chunk of request.body ?? []) {
    if (size + chunk.length > BODY_LIMIT) return null;
    body.set(chunk, size);
    size += chunk.length;
  }
  return body.slice(0, size);
}

function refused(status: number, why: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error: why }, { status, headers });
}

function log(name: string, what: string): void {
  console.error(`poke of ${name}: ${what}`);
}
