package emulator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// What a document says in its note becomes of it, and notifications come in that order, each at its time.
func TestNetwork_OutcomeByNote(t *testing.T) {
	const taken, delivered = "TechnicalAccept/ReceivedForProcessing", "TechnicalAccept/Delivered"
	for note, want := range map[string][]string{
		"":                                    {taken, delivered},
		"emulate:undelivered":                 {taken, "TechnicalReject/Undelivered"},
		"a emulate:invalid b":                 {taken, "TechnicalReject/InvalidContent"},
		"emulate:delayed":                     {taken, "TechnicalInformation/DeliveryDelayed", delivered},
		"emulate:unknown-pair":                {taken, "TechnicalInformation/ConversionStarted", delivered},
		"emulate:rejected-by-recipient":       {taken, delivered, "BusinessReject/DocumentRejected"},
		"emulate:accepted-by-recipient":       {taken, delivered, "BusinessAccept/DocumentAccepted"},
		"emulate:late-reject":                 {taken, delivered, "TechnicalReject/Undelivered"},
		"emulate:silent":                      nil,
		"emulate:delayed emulate:silent":      nil,
		"emulate:delayed emulate:undelivered": {taken, "TechnicalInformation/DeliveryDelayed", "TechnicalReject/Undelivered"},
		"emulate:services": {taken, delivered, "BusinessInformation/EligibleForEarlyPayment", "BusinessInformation/NotEligibleForEarlyPayment",
			"BusinessAccept/RequestForEarlyPayment", "BusinessInformation/DiscountCreditNoteAvailable", "BusinessReject/RepaymentFailed"},
	} {
		w := newNetworkWorld(t, nil)
		w.mustSend(1, note)
		w.now = w.now.Add(time.Hour + 72*time.Hour - time.Second)
		if note == "emulate:late-reject" {
			w.wantPairs(want[:2]...)
		}
		w.now = w.now.Add(time.Second)
		w.wantPairs(want...)
	}
}

// Delivered names the channel. InvalidContent names a file that says why, which can be fetched.
func TestNetwork_PropertiesOfNotices(t *testing.T) {
	w := newNetworkWorld(t, nil)
	for n, note := range []string{"", "emulate:email", "emulate:mail", "emulate:invalid"} {
		w.mustSend(n, note)
	}
	w.now = w.now.Add(time.Hour)
	var got []string
	for _, n := range w.list("page=1&pageSize=100").Notifications {
		for _, p := range n.AdditionalActionProperties {
			if p.Name == "DeliveryMeansCode" {
				got = append(got, p.Value)
				continue
			}
			link := n.Links[len(n.Links)-1]
			if a := w.net("GET", "/files/"+p.Value, ""); a.status != 200 || !strings.Contains(a.body, bumID(3)) || link.Rel != "validationFile" || link.Href != "http://api.test/files/"+p.Value {
				t.Errorf("validation file: %+v, link %+v", a, link)
			}
		}
	}
	kit.Want(t, "channels", got, []string{"ElectronicDelivery", "EmailDelivery", "MailDelivery"})
	a := w.net("GET", "/files/none", "")
	kit.Check(t, w.codeOf(a) == "404 003.0001", "an unknown reference: %+v", a)
}

// Without a word in the note the outcome is drawn, by the seed alone.
func TestNetwork_OutcomesAreDrawnBySeed(t *testing.T) {
	draw := func(seed uint64) (undelivered int) {
		w := newNetworkWorld(t, func(c *Config) {
			c.Seed = seed
			c.Network.Outcomes = []OutcomeRate{{"undelivered", 0.5}, {"silent", 1}}
		})
		for n := range 40 {
			w.mustSend(n, "")
		}
		for i, d := range w.SentDocuments() {
			if slices.Equal(d.Outcomes, []string{"undelivered"}) {
				undelivered += 1 << (i % 30)
			}
		}
		return undelivered
	}
	if one, same, other := draw(1), draw(1), draw(2); one == 0 || one != same || one == other {
		t.Errorf("drawn: %d, %d, %d", one, same, other)
	}
}
