package simulation

import (
	"cmp"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// TestSetBack_I15 sets the machine back while some folders are through, some under way and
// some not yet dropped when the copy was taken: nothing is sent or removed before the
// archive was asked, and then each is archived once.
func TestSetBack_I15(t *testing.T) {
	kit.Rows(t, map[string]SetBack{"LedgerAlone": LedgerAlone, "WholeState": WholeState}, func(t *testing.T, how SetBack) {
		kit.ParallelBubble(t, func(t *testing.T) {
			w := New(t, several(14))
			w.Start()
			w.DropFolders(0, MakeFolder(14, 0, Good))
			w.DropFolders(1, MakeFolder(14, 1, Good))
			w.Advance(3 * time.Hour)
			w.DropFolders(0, MakeFolder(14, 2, Good))
			w.Advance(70 * time.Second)
			w.Snapshot()
			w.DropFolders(0, MakeFolder(14, 3, Good))
			w.DropFolders(1, MakeFolder(14, 4, Good))
			w.Advance(30 * time.Minute)
			w.SetBack(how)
			posts, puts := w.emulator.CountCalls("register"), w.emulator.CountCalls("upload")
			w.DropFolders(0, MakeFolder(14, 5, Good))
			w.Advance(2 * time.Hour)
			kit.Check(t, w.emulator.CountCalls("register") == posts && w.emulator.CountCalls("upload") == puts,
				"sent before the archive was asked")
			w.RunUntilCalm(72 * time.Hour)
			o := w.Check(false)
			kit.Check(t, len(o.EntriesIn(ledger.Archived)) == 6,
				"o = %v, want len(o.EntriesIn(ledger.Archived)) = 6", o)
			once := map[string]int{}
			for _, s := range w.emulator.Registrations() {
				if s.Archivable {
					once[s.ClientUUID]++
				}
			}
			kit.Want(t, "documents archived", len(once), 6)
			for id, n := range once {
				kit.Want(t, id+" is archived", n, 1)
			}
		})
	})
}

// TestSetBack_I2_I32_IndexThatEndsEarly sets the machine back after an invoice was archived of which the old ledger knows
// nothing but its folder, and the archive's list does not go back so far: the index alone knows of it. For days the index
// ends early. Nothing is concluded from that, and once the index is whole everything goes on, each invoice archived once.
func TestSetBack_I2_I32_IndexThatEndsEarly(t *testing.T) {
	kit.Rows(t, map[string]emulator.Kind{
		"ShortPage": emulator.ShortPage, "EmptyPages": emulator.EmptyPage, "SamePageAgain": emulator.RepeatPage, "CirclingCursors": emulator.CirclePage,
	}, func(t *testing.T, kind emulator.Kind) {
		kit.ParallelBubble(t, func(t *testing.T) {
			cfg := several(15)
			cfg.Vaults, cfg.Emulator = 1, func(c *emulator.Config) { c.Readings.IndexPage = 2 }
			w := New(t, cfg)
			w.Intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				resp, err := next.RoundTrip(r)
				if err == nil && strings.HasSuffix(r.URL.Path, "/documents/status") {
					resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader("[]")), 2
				}
				return resp, err
			})
			w.Start()
			for n := range 5 {
				w.DropFolders(0, MakeFolder(15, n, Good))
			}
			w.Advance(3 * time.Hour)
			w.SetPlan(func(op Op) Strike { // what is taken now is registered only after the copy
				if op.Name == "register" {
					return Strike{Blow: Fail}
				}
				return Strike{}
			})
			w.DropFolders(0, MakeFolder(15, 5, Good))
			w.Advance(3 * time.Minute)
			w.Snapshot()
			w.SetPlan(nil)
			for range 60 { // set back before the ledger hears that it is archived: its folder still lies where it was taken to
				if w.emulator.CountCalls("upload") == 6 {
					break
				}
				w.Advance(time.Minute)
			}
			w.SetBack(LedgerAlone)
			w.SetPlan(func(op Op) Strike {
				if op.Name != "index" {
					return Strike{}
				}
				return Strike{Call: emulator.Fault{Kind: kind}}
			})
			posts := w.emulator.CountCalls("register")
			for range 4 {
				w.Administer()
				w.Advance(12 * time.Hour)
			}
			if _, safe := w.d.Ledger().SafeMode(); !safe || w.emulator.CountCalls("register") != posts {
				t.Errorf("safe mode: %v, %d registrations", safe, w.emulator.CountCalls("register")-posts)
			}
			w.SetPlan(nil)
			w.RunUntilCalm(72 * time.Hour)
			kit.Want(t, "o", len(w.Check(false).EntriesIn(ledger.Archived)), 6)
			for _, s := range w.emulator.Registrations() {
				kit.Check(t, s.PUTs <= 0 || !s.ArchivedAt.IsZero(), "%s was sent and is not archived", s.DocumentID)
			}
		})
	})
}

// drawNetwork draws drops for the business network, in every fifth scenario, with what is dropped there, what becomes of it and what goes
// wrong.
func (s *scenario) drawNetwork(r *rand.Rand) {
	if r.IntN(5) > 0 {
		return
	}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	s.Network = Network{Drops: 1 + r.IntN(2), Every: 10*time.Minute + upTo(r, 3*time.Hour), PageSize: r.IntN(2) * (1 + r.IntN(4)), OwnAccount: r.IntN(2) == 0,
		Workers: 1 + r.IntN(3), Settle: s.Settle, Rescan: s.Rescan}
	s.Readings.Network = emulator.NetworkReadings{ErrorWrapper: pick("error", "errors"), SendAnswer: pick("empty", "json"), CreditNoteWord: pick("CreditNode", "CreditNote"),
		Received: pick("type", "code", "code-only"), Times: pick("seconds", "milliseconds"), RepeatedDelete: pick("404", "200"), FetchSent: pick("served", "refused", "unknown")}
	for _, outcome := range []string{"undelivered", "invalid", "late-reject", "accepted-by-recipient", "rejected-by-recipient", "delayed", "unknown-pair", "services", "email", "silent"} {
		s.Outcomes = append(s.Outcomes, emulator.OutcomeRate{Outcome: outcome, Rate: r.Float64() * 0.2})
	}
	s.Rejecting = upTo(r, 72*time.Hour)
	if careful := r.IntN(2) == 0; len(s.PDFs.Drops) == 0 {
		s.Careful = careful
	}
	s.Mix = append(s.Mix, drawMix(r, firstNetwork, firstReceive)...)
	first := len(s.Disposal) + len(s.PDFs.Drops)
	for i := range int(math.Ceil(math.Pow(40, math.Pow(r.Float64(), 2)))) {
		d := dropping{At: upTo(r, dropHours), Drop: first + r.IntN(s.Network.Drops), N: i, Is: Document}
		switch p := r.IntN(100); {
		case p < 15 && i > 0: // the same again, perhaps in another drop
			d.N, d.Again = r.IntN(i), i
		case p < 20:
			d.Is = FaultyDocument
		case p < 23:
			d.Is = VirusDocument
		case p < 26:
			d.Is = TakenDocument
		}
		s.Drops = append(s.Drops, d)
	}
	slices.SortStableFunc(s.Drops, func(a, b dropping) int { return cmp.Compare(a.At, b.At) })
	for _, what := range []string{"vanish", "foreign notices", "foreign notices", "drop again", "drop again", "decide documents"} {
		for range r.IntN(4) {
			s.Mishaps = append(s.Mishaps, mishap{At: upTo(r, faultHours), What: what, Drop: first + r.IntN(s.Network.Drops), For: upTo(r, 3*time.Hour)})
		}
	}
	slices.SortStableFunc(s.Mishaps, func(a, b mishap) int { return cmp.Compare(a.At, b.At) })
	s.Network.Copies = []CopyMoment{NoCopies, OnceDelivered, OnceTaken}[r.IntN(3)]
	s.Outcomes = append(s.Outcomes, emulator.OutcomeRate{Outcome: "checked", Rate: r.Float64() * 0.5})
	s.Readings.Network.Validation, s.Network.CheckedAfter = pick("both", "property", "link"), time.Duration(r.IntN(2))*upTo(r, time.Hour)
	s.drawReceiving(r)
}

// drawReceiving draws documents that come in, in two of three scenarios with the business network.
func (s *scenario) drawReceiving(r *rand.Rand) {
	if r.IntN(3) == 0 {
		return
	}
	s.Network.Receives, s.Network.Confirms = true, r.IntN(2) == 0
	s.Readings.Network.Files = []string{"binary", "base64"}[r.IntN(2)]
	if s.Readings.Network.Received == "type" {
		s.Network.TrustsType = r.IntN(2) == 0
	}
	if r.IntN(4) == 0 {
		s.Readings.Network.Received, s.Network.TrustsType = "filter", true
	}
	s.Mix = append(s.Mix, drawMix(r, firstReceive, len(allClasses))...)
	for n := range 1 + r.IntN(12) {
		s.Mishaps = append(s.Mishaps, mishap{At: upTo(r, dropHours), What: "document comes", Drop: n})
	}
	slices.SortStableFunc(s.Mishaps, func(a, b mishap) int { return cmp.Compare(a.At, b.At) })
	s.Readings.Network.ReceivedAt = []string{"both", "v1"}[r.IntN(2)]
}
