import { forwardPokes } from "../_shared/poke.ts";

Deno.serve(forwardPokes("github_worker"));
