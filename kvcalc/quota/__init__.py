"""Whose KV is it: a ledger of tenants by blocks, and plans that really free memory."""
