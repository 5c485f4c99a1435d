// Carries the precompiled header of the test programs, which a target without sources cannot.
