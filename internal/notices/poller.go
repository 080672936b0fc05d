package notices

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// Service is the business network. Its errors are *apicall.Error.
type Service interface {
	// List lists the notifications of one kind of document that were not acknowledged. It calls sift with what is new on each page, and
	// holds what sift returns. An error of sift ends the list.
	List(ctx context.Context, kind archive.NetworkKind, sift func(page []archive.Notification) ([]archive.Notification, error)) (archive.NotificationList, error)
	// ListReceived lists those that the network gives as notifications of received documents, likewise.
	ListReceived(ctx context.Context, kind archive.NetworkKind, sift func(page []archive.Notification) ([]archive.Notification, error)) (archive.NotificationList, error)
	// ReadNotification reads a notification that was kept as it came.
	ReadNotification(raw []byte) (archive.Notification, error)
	// Acknowledge removes a notification from the list. One that the network does not know is no error.
	Acknowledge(ctx context.Context, id archive.AcknowledgementID) error
}

// Ledger is where notifications and entries live.
type Ledger interface {
	Submit(cs []ledger.Change, then func([]ledger.Result))
	Entry(archive.Key) (ledger.Entry, bool, error)
	FindByRemote(archive.RemoteID) (archive.Key, bool, error)
	HeldNotices(ids []archive.AcknowledgementID) (map[archive.AcknowledgementID]ledger.Notice, error)
	KeepNotices(ctx context.Context, at archive.Instant, all []ledger.OtherNotice) (map[archive.AcknowledgementID]arrival.Arrival, error)
}

// Config is what a Poller works with. All but the last four are needed.
type Config struct {
	Service Service
	Ledger  Ledger
	Now     func() archive.Instant
	Log     *slog.Logger
	Every   time.Duration // between two lists
	IsHeld  func() bool   // nothing may be applied now, because the ledger is in safe mode; nil: never
	OnDone  func()        // called after each round; nil: nobody wants to know

	OnCommit func(ledger.Entry) // called for each entry that was committed, in the order of the commits; it must not wait; nil: nobody wants to know
	Arrivals Arrivals           // received documents; nil: none are received, and what announces one is foreign

	TrustsType bool // whatever the list of received documents has announces one, and not the code of a notification alone
}

// Round says how one look at the network ended.
type Round struct {
	HasMore bool // it left something for the next round, which follows at once
	At      time.Time
	Err     error // why it ended early; nil: it did not
}

// Poller takes notifications into the ledger.
type Poller struct {
	cfg     Config
	alarmed map[string]bool // pairs of codes that were told of; used by one round at a time

	trustsType  bool // this round believes the list of received documents
	ignoresType bool // the list of received documents, which is to be believed, had what is about a sent one; used by one round at a time

	incomplete map[archive.NetworkKind]int // records of the last list that could not be read; -1: the list did not reach its end

	mu        sync.Mutex
	status    Status // guarded by mu
	hasPolled bool   // guarded by mu
}

// Status says how the poller and the network get on. A restart forgets it.
type Status struct {
	FailingSince time.Time // no round was good since then; zero: the last one was
	Why          string    // the last round was not; empty: it was
	Unreadable   int       // notifications that cannot be read, or say something else than was kept: they are neither applied nor acknowledged
	IsCut        bool      // a list did not reach its end
	IgnoresType  bool      // the list of received documents, which is to be believed, had a notification about a sent one
}

// Status returns how the poller gets on.
func (p *Poller) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// HasPolled reports whether it looked at all that the network has to tell since it began, or failed to.
func (p *Poller) HasPolled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasPolled
}

// noteRound notes how a round ended.
func (p *Poller) noteRound(r Round) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hasPolled = p.hasPolled || r.Err != nil || !r.HasMore
	p.status.Why = ""
	if r.Err != nil {
		p.status.Why = r.Err.Error()
	}
	if r.Err == nil || p.status.FailingSince.IsZero() {
		p.status.FailingSince = time.Time{}
		if r.Err != nil {
			p.status.FailingSince = r.At
		}
	}
	p.status.Unreadable, p.status.IsCut, p.status.IgnoresType = 0, false, p.ignoresType
	for _, n := range p.incomplete {
		p.status.Unreadable += max(n, 0)
		p.status.IsCut = p.status.IsCut || n < 0
	}
}

// New returns a poller.
func New(cfg Config) *Poller {
	return &Poller{cfg: cfg, alarmed: map[string]bool{}, incomplete: map[archive.NetworkKind]int{}}
}

const (
	maxPause   = 15 * time.Minute // after rounds that fail
	quietTimes = 9                // how much longer than a round the pause after it is, at least
)

// Run looks at the network until ctx ends. After rounds that fail it waits longer, at most 15 minutes or as the network asks.
func (p *Poller) Run(ctx context.Context) {
	for failed := 0; ; {
		began := p.cfg.Now()
		r := p.Poll(ctx)
		if ctx.Err() != nil {
			return
		}
		p.noteRound(r)
		// A long backlog of other programs is read again in each round: that
		// takes a tenth of the time.
		pause := max(p.cfg.Every, quietTimes*(p.cfg.Now().Boot-began.Boot))
		if failed++; r.Err == nil {
			failed = 0
			if r.HasMore {
				pause = time.Second // what this round took is kept, and the next one reads on behind it
			}
		} else {
			pause = max(min(p.cfg.Every<<min(failed-1, 10), maxPause), apicall.AsError(r.Err).RetryAfter)
			p.cfg.Log.Warn("the notifications of the business network were not taken; they are listed again", "err", r.Err, "again_in", pause.String())
		}
		if p.cfg.OnDone != nil {
			p.cfg.OnDone()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// kinds are what is asked for.
var kinds = []archive.NetworkKind{archive.NetworkInvoice, archive.NetworkCreditNote}

// Poll looks at the network once. Only invoices and credit notes are asked for, so orders and catalogues are never touched.
func (p *Poller) Poll(ctx context.Context) Round {
	r := Round{At: p.cfg.Now().Wall}
	if p.cfg.IsHeld != nil && p.cfg.IsHeld() {
		return r
	}
	if r.Err = p.checkTrust(ctx); r.Err != nil {
		return r
	}
	for _, kind := range kinds {
		if p.cfg.IsHeld != nil && p.cfg.IsHeld() {
			return r
		}
		l, err := p.list(ctx, kind, &r)
		// What came before a fault is what the network told: it is taken all the same.
		r.Err = firstError(r.Err, errors.Join(err, p.takeAll(ctx, l, &r)))
	}
	return r
}

func firstError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// batch is how many notifications are committed together.
const batch = 500

// maxFailedAcknowledgements is after how many acknowledgements that fail a round makes no more of them.
const maxFailedAcknowledgements = 10

// takeAll applies notifications in the order in which the network made them, and acknowledges what is committed. All are applied first: no
// fault of one, and none of an acknowledgement, keeps back what the network told of another document.
func (p *Poller) takeAll(ctx context.Context, l listed, r *Round) error {
	slices.SortStableFunc(l.all, func(a, b archive.Notification) int { return a.Created.Compare(b.Created) })
	done := slices.Sorted(maps.Keys(l.done))
	var failed error
	for part := range slices.Chunk(l.all, batch) {
		committed, err := p.applyPart(ctx, part, l)
		done, failed = append(done, committed...), firstError(failed, err)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return firstError(failed, p.acknowledgeAll(ctx, done, r))
}

// ackTime is for how long a round acknowledges. One that has more to acknowledge ends then, so that a backlog of a hundred thousand does not
// keep back for hours what the network tells meanwhile.
const ackTime = time.Minute

// acknowledgeAll acknowledges notifications that are committed, one after the other. Its error is the first one.
func (p *Poller) acknowledgeAll(ctx context.Context, done []archive.AcknowledgementID, r *Round) (first error) {
	failed, began := 0, p.cfg.Now().Boot
	for _, id := range done {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.cfg.Now().Boot-began >= ackTime {
			r.HasMore = true // they are listed again, and acknowledged by the next round
			return first
		}
		// The DELETE: what it acknowledges was committed before. A crash here leaves it listed, and the next round acknowledges it.
		err := p.cfg.Service.Acknowledge(ctx, id)
		if err == nil {
			continue
		}
		first = firstError(first, err)
		if failed++; failed == maxFailedAcknowledgements || apicall.AsError(err).Denied {
			return first
		}
	}
	return first
}

// applyPart commits a part of the notifications, and returns those that may be acknowledged now. None of them is kept for a document already.
func (p *Poller) applyPart(ctx context.Context, part []archive.Notification, l listed) (done []archive.AcknowledgementID, err error) {
	var others []archive.Notification
	ours := map[archive.Key][]archive.Notification{}
	var keys []archive.Key
	for _, n := range part {
		key, found, err := p.findDocument(n.Document)
		if err != nil {
			return nil, err
		}
		if !found {
			others = append(others, n)
			continue
		}
		if ours[key] == nil {
			keys = append(keys, key)
		}
		ours[key] = append(ours[key], n)
	}
	ended, err := p.keepOthers(ctx, others, l)
	if err != nil {
		return nil, err
	}
	done = append(done, ended...)
	committed, err := p.commitOurs(ctx, keys, ours)
	return append(done, committed...), err
}

// findDocument finds the entry whose document went to the network under a number. The archive's numbers are none of the network.
func (p *Poller) findDocument(number archive.RemoteID) (key archive.Key, found bool, err error) {
	key, found, err = p.cfg.Ledger.FindByRemote(number)
	if err != nil || !found {
		return key, false, err
	}
	e, known, err := p.cfg.Ledger.Entry(key)
	return key, known && e.IsOwnNumber(number), err
}

// commitOurs commits the notifications of entries of the ledger, and returns
// those that are committed. A number that was found to be another one's
// meanwhile is refused with what else is told of its entry: all of that is
// listed again, and the next round decides anew.
func (p *Poller) commitOurs(ctx context.Context, keys []archive.Key, ours map[archive.Key][]archive.Notification) (done []archive.AcknowledgementID, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var changes []ledger.Change
	for _, k := range keys {
		c := ledger.Change{Key: k, Fact: true, At: p.cfg.Now()}
		for _, n := range ours[k] {
			c.Events = append(c.Events, ledger.NotificationSeen{Notification: n})
			p.tellUnfamiliar(n)
		}
		changes = append(changes, c)
	}
	answered := make(chan []ledger.Result, 1)
	// A crash before the commit leaves them listed. After it they are
	// acknowledged, by this round or a later one.
	p.cfg.Ledger.Submit(changes, func(rs []ledger.Result) {
		p.tellCommitted(rs)
		answered <- rs
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case rs := <-answered:
		for _, res := range rs {
			if res.Err != nil {
				err = firstError(err, res.Err)
				continue
			}
			for _, n := range ours[res.Key] {
				done = append(done, n.AcknowledgementID)
			}
		}
		return done, err
	}
}

// tellCommitted tells of the entries that were committed. What is due next is in the ledger: a crash here delays nothing but this word.
func (p *Poller) tellCommitted(rs []ledger.Result) {
	if p.cfg.OnCommit == nil {
		return
	}
	for _, res := range rs {
		if res.Err == nil {
			p.cfg.OnCommit(res.Entry)
		}
	}
}

// tellIncomplete tells once of a list that leaves something out: of what it leaves out nobody hears. unread: what cannot be acted upon.
func (p *Poller) tellIncomplete(kind archive.NetworkKind, list archive.NotificationList, unread int) {
	now := unread
	if now == 0 && !list.Whole && !list.HasMore {
		now = -1
	}
	if now == p.incomplete[kind] {
		return
	}
	p.incomplete[kind] = now
	switch {
	case now > 0:
		p.cfg.Log.Error("notifications of the business network cannot be read, or say something else than before under one number; they are neither taken nor acknowledged, and their documents may wait for ever. Ask the provider",
			"kind", kind, "notifications", now)
	case now < 0:
		p.cfg.Log.Error("the list of notifications of the business network did not reach its end, and what lies behind is not heard of: see docs/network.md#limits", "kind", kind)
	}
}

// maxUnfamiliar bounds the memory and the log where the network uses ever new codes.
const maxUnfamiliar = 32

// tellUnfamiliar tells once of each pair of codes that is not known.
func (p *Poller) tellUnfamiliar(n archive.Notification) {
	pair := n.Pair()
	if n.Meaning() != archive.MeansUnfamiliar || p.alarmed[pair] || len(p.alarmed) == maxUnfamiliar {
		return
	}
	p.alarmed[pair] = true
	p.cfg.Log.Error("the business network told something that is not known; it is kept and changes nothing. Tell the makers of vaultd", "pair", pair)
	if len(p.alarmed) == maxUnfamiliar {
		p.cfg.Log.Error("the business network uses many codes that are not known; no further one is logged until a restart", "pairs", maxUnfamiliar)
	}
}
