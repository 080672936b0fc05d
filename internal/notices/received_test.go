package notices

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// I30: a notification announces a document by the list that it stands in where it stood there alone in three rounds in a row. Others that stand in both
// lists, and a list that did not reach its end, say nothing; where the list is trusted, each does at once.
func TestAnnouncedByType_I30(t *testing.T) {
	a, b := archive.Notification{AcknowledgementID: "a"}, archive.Notification{AcknowledgementID: "b"}
	type round struct {
		received []archive.Notification
		inBoth   []archive.AcknowledgementID
		isCut    bool

		believed []archive.AcknowledgementID
		hasDoubt bool
	}
	type row struct {
		trusts bool
		rounds []round
	}
	kit.Rows(t, map[string]row{
		"ThreeTimes":    {rounds: []round{{received: []archive.Notification{a}, hasDoubt: true}, {received: []archive.Notification{a}, hasDoubt: true}, {received: []archive.Notification{a}, believed: []archive.AcknowledgementID{"a"}}}},
		"OneInBoth":     {rounds: []round{{received: []archive.Notification{a, b}, inBoth: []archive.AcknowledgementID{"a"}, hasDoubt: true}, {received: []archive.Notification{a, b}, inBoth: []archive.AcknowledgementID{"a"}, hasDoubt: true}, {received: []archive.Notification{a, b}, inBoth: []archive.AcknowledgementID{"a"}, believed: []archive.AcknowledgementID{"b"}}}},
		"EmptyTwice":    {rounds: []round{{received: []archive.Notification{a}, hasDoubt: true}, {received: []archive.Notification{a}, hasDoubt: true}, {received: []archive.Notification{a}, inBoth: []archive.AcknowledgementID{"a"}}, {received: []archive.Notification{a}, hasDoubt: true}}},
		"Deleted":       {rounds: []round{{received: []archive.Notification{a}, hasDoubt: true}, {received: []archive.Notification{a}, hasDoubt: true}, {}, {received: []archive.Notification{a}, hasDoubt: true}}},
		"CutInBetween":  {rounds: []round{{received: []archive.Notification{a}, hasDoubt: true}, {received: []archive.Notification{a}, hasDoubt: true}, {received: []archive.Notification{a}, isCut: true}, {received: []archive.Notification{a}, hasDoubt: true}}},
		"Trusted":       {trusts: true, rounds: []round{{received: []archive.Notification{a, b}, inBoth: []archive.AcknowledgementID{"a"}, believed: []archive.AcknowledgementID{"a", "b"}}}},
		"TrustedAndCut": {trusts: true, rounds: []round{{received: []archive.Notification{a}, isCut: true, believed: []archive.AcknowledgementID{"a"}}}},
	}, func(t *testing.T, r row) {
		p := New(Config{})
		p.trustsType = r.trusts
		for n, at := range r.rounds {
			isListed := map[archive.AcknowledgementID]bool{}
			for _, id := range at.inBoth {
				isListed[id] = true
			}
			var is Round
			var believed []archive.AcknowledgementID
			for id, ok := range p.announcedByType(archive.NetworkInvoice, at.received, isListed, !at.isCut, &is) {
				if ok {
					believed = append(believed, id)
				}
			}
			if slices.Sort(believed); !slices.Equal(believed, at.believed) || is.HasDoubt != at.hasDoubt {
				t.Errorf("round %d: believed = %v, doubt %t, want %v, %t", n, believed, is.HasDoubt, at.believed, at.hasDoubt)
			}
		}
	})
}

// Each unknown pair of codes is logged once, up to a bound that is logged too.
func TestUnfamiliar_I21_EverNewCodesAreBounded(t *testing.T) {
	var log bytes.Buffer
	p := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		for i := range 100 {
			p.tellUnfamiliar(archive.Notification{Response: "New", Action: fmt.Sprintf("Code%d", i)})
		}
	}
	kit.Want(t, "pairs that are logged", strings.Count(log.String(), "something that is not known"), 32)
	kit.Want(t, "lines at the bound", strings.Count(log.String(), "many codes that are not known"), 1)
}
