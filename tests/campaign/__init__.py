"""The fault campaign: the whole product at work while one process after another is killed, stopped, cut off."""
