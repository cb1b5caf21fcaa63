"""Runs in processes of their own: forked from a server that has built nothing, or in whole new interpreters."""
