"""A server that behaves like GitHub's documented REST contract, for the demo and the tests.

It answers over real HTTP on loopback, and it measures what the allocator promises: how many
messages of one org are in flight, and whether the org that was called is the org that was charged.
"""
