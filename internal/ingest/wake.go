package ingest

// Wake makes every step look at once at what is due: a person acted on an entry, and
// the conductor did not see it.
func (c *Conductor) Wake() {
	if err := c.recallBacklog(); err != nil {
		c.cfg.Log.Error("what waits for its upload was not counted anew", "err", err)
	}
	for _, r := range c.runners {
		r.nudge()
	}
}
