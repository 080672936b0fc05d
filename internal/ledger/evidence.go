package ledger

import (
	"time"

	"vaultd/internal/archive"
)

// Evidence says how far it is proven that no content is at the service under this
// registration: how many equal answers were counted, how many it needs, and before when
// on our clock they are not believed, because something may be in flight; the service's
// clock must say so too. need is 0 where no answer of this kind proves it.
func (r Registration) Evidence(grace time.Duration) (have, need int, from time.Time) {
	if r.LastStatus == archive.WaitingForPackage || r.LastStatus == archive.Failed {
		have, need = int(r.EqualAnswers), neededAnswers
	}
	return have, need, r.lastUse().Add(grace)
}
