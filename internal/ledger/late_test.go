package ledger

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// uploaded returns an entry whose package the store took a minute into its window, and
// when the window began.
func uploaded() (Entry, time.Time) {
	began := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	return Entry{Key: archive.Key{1}, State: Uploaded, Source: Claimed, ID: archive.ID{1}, FirstID: archive.ID{1}, Posts: 1, Answers: 1,
		UploadedAt: began.Add(time.Minute),
		Registrations: []Registration{{UploadIntents: 1, Fate: Stored, ClosedAt: began.Add(time.Minute),
			Ticket: archive.Ticket{Remote: "b1", Date: began, SignedAt: began, Validity: 15 * time.Minute}}}}, began
}

// A package that the store took can reach the archive late. Until then the service
// speaks of a registration that nobody used, and that is no failure of the document.
func TestFailed_I2_AtTheWindowsEndIsNoFailureOfTheDocument(t *testing.T) {
	const grace = 24 * time.Hour
	for name, row := range map[string]struct {
		before archive.ServiceStatus // heard just before
		dated  time.Duration         // after the window began
		heard  time.Duration
		want   State
	}{
		"NothingCameBeforeTheWindowsEnd": {archive.WaitingForPackage, 15 * time.Minute, 20 * time.Minute, Uploaded},
		"StillSaidAfterTheGrace":         {archive.Failed, 15 * time.Minute, 25 * time.Hour, Unclear},
		"FailedInTheMiddleOfTheWindow":   {archive.WaitingForPackage, 5 * time.Minute, 20 * time.Minute, Packaged},
		"FailedWhileItWasArchived":       {archive.InProgress, 3 * time.Hour, 4 * time.Hour, Packaged},
		"OfAnEarlierRegistration":        {archive.WaitingForPackage, -time.Hour, time.Hour, Uploaded},
		"OfAnEarlierOneAfterTheGrace":    {archive.Failed, -time.Hour, 25 * time.Hour, Unclear},
	} {
		t.Run(name, func(t *testing.T) {
			e, began := uploaded()
			e.Registrations[0].LastStatus, e.Registrations[0].EqualAnswers = row.before, 1
			e, err := Transition(e, StatusSeen{Grace: grace, Receipt: archive.Receipt{Remote: "b1", Status: archive.Failed, Updated: began.Add(row.dated)}},
				archive.Instant{Wall: began.Add(row.heard)})
			kit.Check(t, err == nil && e.State == row.want, "state = %v (%v), want %v", e.State, err, row.want)
		})
	}
}

// A package that the store takes and the archive never sees must not go round for ever.
func TestMissing_I25_LostThreeTimesCallsAPerson(t *testing.T) {
	const grace = 24 * time.Hour
	e, at := uploaded()
	for range maxFailures {
		e.State, e.UploadedAt = Uploaded, at
		e.Registrations[0].Fate, e.Registrations[0].ClosedAt = Stored, at
		for range 3 * graceParts {
			at = at.Add(grace / graceParts)
			next, err := Transition(e, StatusSeen{Grace: grace, Receipt: archive.Receipt{Remote: "b1", Status: archive.WaitingForPackage, Date: at}}, archive.Instant{Wall: at})
			kit.Must(t, err)
			if e = next; e.State != Uploaded && e.State != Unclear {
				break
			}
		}
		if e.State == Quarantined {
			break
		}
		kit.Need(t, e.State == Packaged, "state = %s, want %s", e.State, Packaged)
	}
	kit.Check(t, e.State == Quarantined && e.Failures == maxFailures, "%s after %d", e.State, e.Failures)
}
