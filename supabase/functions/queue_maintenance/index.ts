import { forwardPokes } from "../_shared/poke.ts";

Deno.serve(forwardPokes("queue_maintenance"));
