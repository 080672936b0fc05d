// The tests of this file are inside the package because they ask about up to 100,000
// documents for a virtual day: with a ledger file that takes many times as long.
package ingest

import (
	"container/heap"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// askedService only answers questions, and counts them. Each takes a moment.
type askedService struct {
	Client
	uploads []archive.RemoteID                 // in their order
	ends    map[archive.RemoteID]time.Time     // when each is archived
	away    func(time.Time) bool               // nothing is answered; nil: always there
	alone   map[archive.RemoteID]int           // single questions
	gap     map[archive.RemoteID]time.Duration // the longest between two answers
	last    map[archive.RemoteID]time.Time

	counting       sync.Mutex // guards what follows, and the maps
	lists, singles int
	second         map[int64]int // single questions by the second
}

var errAway = &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "timeout", Text: "timeout"}

func bubbleNow() archive.Instant { return archive.Instant{Wall: time.Now(), BootID: "boot"} }

func (d *askedService) receipt(r archive.RemoteID) archive.Receipt {
	now := time.Now()
	d.gap[r], d.last[r] = max(d.gap[r], now.Sub(d.last[r])), now
	rc := archive.Receipt{Remote: r, Status: archive.InProgress, Raw: "ArchivingInProgress", Updated: now}
	if !now.Before(d.ends[r]) {
		rc.Status, rc.Raw = archive.Successful, "ArchivingSuccessful"
	}
	return rc
}

func (d *askedService) Status(_ context.Context, _ archive.VaultID, r archive.RemoteID) (archive.Receipt, error) {
	time.Sleep(20 * time.Millisecond)
	d.counting.Lock()
	defer d.counting.Unlock()
	d.singles++
	d.alone[r]++
	d.second[time.Now().Unix()]++
	if d.away != nil && d.away(time.Now()) {
		return archive.Receipt{}, errAway
	}
	return d.receipt(r), nil
}

func (d *askedService) StatusList(context.Context, archive.VaultID) (said []archive.Receipt, err error) {
	time.Sleep(100 * time.Millisecond)
	d.counting.Lock()
	defer d.counting.Unlock()
	d.lists++
	if d.away != nil && d.away(time.Now()) {
		return nil, errAway
	}
	for _, r := range d.uploads[max(0, len(d.uploads)-500):] {
		said = append(said, d.receipt(r))
	}
	return said, nil
}

// queue holds entries by when they are due, as the ledger's index does.
type queue []ledger.Entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].NotBefore.Before(q[j].NotBefore) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(e any)        { *q = append(*q, e.(ledger.Entry)) }
func (q *queue) Pop() any {
	e := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return e
}

// newAsking returns a service, and an engine that asks it.
func newAsking(away func(time.Time) bool) (*askedService, *Engine) {
	d := &askedService{ends: map[archive.RemoteID]time.Time{}, second: map[int64]int{}, alone: map[archive.RemoteID]int{},
		gap: map[archive.RemoteID]time.Duration{}, last: map[archive.RemoteID]time.Time{}, away: away}
	return d, New(Config{Routes: map[ledger.Route]Route{ledger.Vault: {Client: d, Asker: d}}, Now: bubbleNow, Log: slog.New(slog.DiscardHandler), PollMin: time.Minute, PollMax: 30 * time.Minute, Grace: 24 * time.Hour})
}

// upload makes an uploaded entry that the service archives at ends.
func (d *askedService) upload(r archive.RemoteID, ends time.Time) ledger.Entry {
	d.counting.Lock()
	defer d.counting.Unlock()
	d.uploads, d.ends[r], d.last[r] = append(d.uploads, r), ends, time.Now()
	return ledger.Entry{Key: archive.NewKey(time.Now()), Route: ledger.Vault, State: ledger.Uploaded, Vault: "V", Source: ledger.Claimed,
		Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: r}, Fate: ledger.Stored}}}
}

// day asks about n documents for one virtual day. They come evenly within a time, and
// each is archived after the time that takes returns. The engine's own functions ask
// about what is due and decide when to ask again.
func day(t *testing.T, n int, within time.Duration, takes func() time.Duration, away func(time.Time) bool) (d *askedService, open int) {
	d, c := newAsking(away)
	var q queue
	began := time.Now()
	for came := 0; time.Since(began) < 24*time.Hour; {
		for came < n && time.Since(began) >= within*time.Duration(came)/time.Duration(n) {
			e := d.upload(archive.RemoteID(fmt.Sprint("bum-", came)), time.Now().Add(takes()))
			e.NotBefore = c.nextPollAt(e)
			heap.Push(&q, e)
			came++
		}
		var es []ledger.Entry
		for len(q) > 0 && len(es) < askBatch && !q[0].NotBefore.After(time.Now()) {
			es = append(es, heap.Pop(&q).(ledger.Entry))
		}
		if len(es) == 0 {
			time.Sleep(time.Second)
			continue
		}
		if until, open := c.breakers.IsOpen(AskTarget("V"), time.Now()); open {
			time.Sleep(time.Until(until))
		}
		cs, _ := c.askAbout(t.Context(), es)
		for i, change := range cs {
			e := es[i]
			for _, ev := range change.Events {
				next, err := ledger.Transition(e, ev, bubbleNow())
				kit.Need(t, err == nil, "event %T not taken: %v", ev, err)
				e = next
			}
			if e.State == ledger.Uploaded {
				heap.Push(&q, e)
			}
		}
	}
	return d, len(q)
}

// most returns the most single questions about one document, the longest time between two answers about one, and the
// most single questions in one second.
func (d *askedService) most() (questions int, gap time.Duration, second int) {
	for r := range d.ends {
		questions, gap = max(questions, d.alone[r]), max(gap, d.gap[r])
	}
	for _, n := range d.second {
		second = max(second, n)
	}
	return questions, gap, second
}

// The service archives within minutes or hours. It is asked a few times about each
// document; the list answers for those that came last.
func TestAsk_RequestsPerDocument(t *testing.T) {
	t.Parallel()
	many := 100_000
	if kit.Sampled(t, "documents of a day") {
		many = 2_000
	}
	for name, row := range map[string]struct {
		n    int
		most float64 // requests for each archived document
	}{"AFewADay": {400, 3.5}, "Many": {many, 10}} {
		kit.Bubble(t, name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			takes := func() time.Duration { // between a minute and four hours, each size as likely as the other
				return time.Duration(float64(time.Minute) * math.Pow(240, r.Float64()))
			}
			d, open := day(t, row.n, 8*time.Hour, takes, nil)
			per := float64(d.singles+d.lists) / float64(row.n)
			questions, gap, second := d.most()
			t.Logf("%d documents: %d lists, %d single questions, %.2f requests each; at most %d about one, %v apart, %d in a second", row.n, d.lists, d.singles, per, questions, gap, second)
			kit.Check(t, open <= 0 && per <= row.most,
				"%d still open, %.2f requests for each, want none and at most %.2f", open, per, row.most)
		})
	}
}

// I25: documents that came in a burst stay open for a day, with an outage or without.
// None is asked about more often than poll_max allows, none is left out, and they are
// never all asked about at once.
func TestAsk_I25_OpenForADay(t *testing.T) {
	t.Parallel()
	n := 20_000
	if kit.Sampled(t, "documents that stay open for a day") {
		n = 1_000 // the list of the service names half of them
	}
	kit.Rows(t, map[string]func(time.Duration) bool{
		"There": nil,
		"Away":  func(at time.Duration) bool { return at > 5*time.Hour && at < 11*time.Hour },
	}, func(t *testing.T, away func(time.Duration) bool) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			gone := func(now time.Time) bool { return away != nil && away(now.Sub(began)) }
			d, open := day(t, n, time.Minute, func() time.Duration { return 48 * time.Hour }, gone)
			questions, gap, second := d.most()
			t.Logf("%d open: %d lists, %d single questions; at most %d about one, %v apart, %d in a second", open, d.lists, d.singles, questions, gap, second)
			longest := 30*time.Minute*9/8 + 2*time.Minute + 20*time.Minute // and the round itself
			if away != nil {
				longest += 6*time.Hour + 5*time.Minute
			}
			if open != n || questions > 52 || gap > longest || second > 200 {
				t.Errorf("%d open; at most %d questions about one, %v apart, %d in a second; want %d; at most 52, %v, 200", open, questions, gap, second, n, longest)
			}
		})
	})
}
