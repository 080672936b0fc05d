package ingest

// Wake makes every step look at once at what is due: a person acted on an entry, and
// the conductor did not see it. It waits for nothing, so that whoever is told of a commit
// may call it.
func (c *Engine) Wake() {
	c.woken.Store(true)
	for _, r := range c.runners {
		r.nudge()
	}
}
