"""What is done between the pieces of an outermost loop's actions.

courses          Which loops have something to be done there, and what.
tiers            Restart slots on disk: states written and read.
fallback         The same where a state that is lost is computed again.
timed            A run that leaves most steps out, to time a few.
resume           Progress records, from which a run that was killed goes on.
"""
