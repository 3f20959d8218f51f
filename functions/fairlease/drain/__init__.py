"""The drain engine. In reading order: poke, run, claim, refill (or batch), handle, settle, release.

Beside the path: `budget` and `quantum` decide when to stop, `lease` is what is held, `renew`
keeps it, `mode` remembers what this database does not know.
"""
