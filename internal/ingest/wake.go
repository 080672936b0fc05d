package ingest

// Wake makes every step look at once at what is due: a person acted on an entry, and
// the conductor did not see it.
func (c *Conductor) Wake() {
	for _, r := range c.runners {
		r.nudge()
	}
}
