package simulation

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"vaultd/internal/emulator"
)

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
