package ingest

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
)

const (
	askBatch   = 500 // entries in one round of questions
	askSingles = 4   // single questions at once
	listWorth  = 3   // due entries for which the list is asked first
)

// askStep asks the service what became of documents: the list of the last 500 first,
// then one by one what the list does not hold.
func (c *Engine) askStep() engine.Step[ledger.Entry, Target] {
	s := c.newStep(ledger.Ask, 2)
	s.Terms = func(queue string) engine.Terms[Target] {
		return engine.Terms[Target]{Target: AskTarget(vaultOf(queue)), Batch: askBatch}
	}
	s.Admit = func(queue string, _ archive.Instant) (func(ledger.Entry) admission, error) {
		return func(ledger.Entry) admission { return admission{Target: AskTarget(vaultOf(queue)), Most: askBatch} }, nil
	}
	s.Start = func(t *task) func(context.Context) { return func(ctx context.Context) { c.ask(ctx, t) } }
	return s
}

// ask asks about documents. Questions change nothing: a crash asks again.
func (c *Engine) ask(ctx context.Context, t *task) {
	if !c.begin(ctx, t, t.Jobs[0]) {
		return
	}
	cs, said := c.askAbout(ctx, t.Jobs)
	c.finish(t, t.Jobs, append(cs, c.changesOfOthers(said, t.Jobs)...))
}

// statusLists is what is remembered of the questions about each vault. A restart
// forgets it, which costs a list.
type statusLists struct {
	mu    sync.Mutex
	asked map[archive.VaultID]time.Time        // when the list was asked for last, answered or not; guarded by mu
	last  map[archive.VaultID]archive.RemoteID // the number about which a question alone was answered last; guarded by mu
}

// mayAsk reports whether the list of a vault is to be asked for now: it was not
// for a while. It counts as asked for from then on.
func (l *statusLists) mayAsk(v archive.VaultID, now time.Time, pause time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, known := l.asked[v]; known && now.Sub(at).Abs() < pause {
		return false
	}
	l.asked[v] = now
	return true
}

// readListIfWorthIt asks for the list of a vault where that is worth it, and returns what it says about es. said is
// all that it says; nil: it was not asked for.
func (c *Engine) readListIfWorthIt(ctx context.Context, vault archive.VaultID, es []ledger.Entry) (heard, said map[archive.RemoteID]archive.Receipt) {
	heard = map[archive.RemoteID]archive.Receipt{}
	now := c.cfg.Now().Wall
	if len(es) < listWorth || !c.statusLists.mayAsk(vault, now, c.cfg.PollMin/2) {
		return heard, nil
	}
	said, err := c.readList(ctx, vault)
	if err != nil { // only a shortcut: the questions tell whether something is wrong
		c.cfg.Log.Warn("status list not read; each document is asked about alone", "vault", vault, "err", err)
	}
	for _, e := range es {
		asked := e.DueQuestions(now)
		for _, r := range e.Registrations {
			rc, is := said[r.Ticket.Remote]
			if is && (slices.Contains(asked, r.Ticket.Remote) || e.IsNews(rc)) {
				heard[r.Ticket.Remote] = rc
			}
		}
	}
	return heard, said
}

// readList asks for the list of a vault: its newest 500 registrations. After a
// fault it says nothing.
func (c *Engine) readList(ctx context.Context, vault archive.VaultID) (map[archive.RemoteID]archive.Receipt, error) {
	// A GET: a crash during it changes nothing, and the next start asks again.
	records, err := c.asker().StatusList(ctx, vault)
	said := map[archive.RemoteID]archive.Receipt{}
	for _, r := range records {
		said[r.Remote] = r
	}
	return said, err
}

// askAbout returns one change for each of es, in their order, and all that the list says where it was fetched for them.
func (c *Engine) askAbout(ctx context.Context, es []ledger.Entry) (cs []ledger.Change, said map[archive.RemoteID]archive.Receipt) {
	vault := es[0].Vault
	heard, said := c.readListIfWorthIt(ctx, vault, es)
	q := questions{heard: heard, answered: len(said) > 0 && len(heard) > 0, unknownNumbers: map[archive.RemoteID]*apicall.Error{}}
	// What the list does not tell is asked one by one.
	c.askSingly(ctx, vault, es, &q)
	if again := c.settleUnknownNumbers(ctx, vault, es, &q); again != nil {
		said = again
	}
	if ctx.Err() == nil || len(q.heard) > 0 {
		c.updateAskBreaker(vault, &q)
	}
	for _, e := range es {
		// What was heard counts even if the call for another document failed.
		switch evs := c.eventsOf(e, q.heard); {
		case len(evs) > 0:
			cs = append(cs, c.newChange(e, evs...))
		case ctx.Err() != nil: // it was not asked about, and stays due
		case q.fault != nil:
			cs = append(cs, c.newChange(e, ledger.Postponed{NotBefore: c.retryAt(e), Cause: causeOf(q.fault)}))
		default:
			cs = append(cs, c.newChange(e, ledger.Postponed{NotBefore: c.nextPollAt(e), Cause: ledger.Cause{Code: "no-answer"}}))
		}
	}
	return cs, said
}

// changesOfOthers returns what a list tells of registrations of other entries than es, for which nothing waits: the service has
// content that the ledger does not count.
func (c *Engine) changesOfOthers(said map[archive.RemoteID]archive.Receipt, es []ledger.Entry) []ledger.Change {
	asked := map[archive.Key]bool{}
	for _, e := range es {
		asked[e.Key] = true
	}
	told, entries := map[archive.Key][]ledger.Event{}, map[archive.Key]ledger.Entry{}
	for r, rc := range said {
		if rc.Status != archive.Successful && rc.Status != archive.InProgress {
			continue
		}
		key, ok, err := c.cfg.Index.FindByRemote(r)
		if err != nil || !ok || asked[key] {
			continue // an index that cannot be read is told of where its steps are
		}
		e, ok, err := c.cfg.Ledger.Entry(key)
		if err == nil && ok && e.IsNews(rc) {
			told[key], entries[key] = append(told[key], c.statusEvents(e, rc)...), e
		}
	}
	var cs []ledger.Change
	for key, evs := range told {
		if len(evs) > 0 {
			cs = append(cs, c.newChange(entries[key], evs...))
		}
	}
	return cs
}

// questions is one round of them. One that fails says nothing about the others, but
// a few that fail in a row, or one that was turned away, end the round. One that may only
// say that its number is unknown is kept apart, until the vault has answered another.
type questions struct {
	mu    sync.Mutex
	heard map[archive.RemoteID]archive.Receipt // guarded by mu
	fault *apicall.Error                       // the last one; guarded by mu
	row   int                                  // failed since the last answer; guarded by mu

	answered bool // the service said something, beside what is known from a list of before; guarded by mu

	unknownNumbers map[archive.RemoteID]*apicall.Error // that failed as unknown numbers do; guarded by mu
	vaultAnswers   bool                                // it did so after they had failed; guarded by mu
}

func (q *questions) isOver() bool { return q.row >= engine.Tolerated || q.isRefused() }

// isRefused reports whether the last fault is certainly the service's, and not one document's.
func (q *questions) isRefused() bool {
	return q.fault != nil && (q.fault.Outcome != apicall.OutcomeUnknown || q.fault.Overloaded())
}

// isOpen reports whether r is still to be asked about.
func (q *questions) isOpen(r archive.RemoteID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, known := q.heard[r]
	return !known && !q.isOver()
}

func (q *questions) record(r archive.RemoteID, rc archive.Receipt, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	fault := apicall.AsError(err)
	switch {
	case err == nil:
		q.heard[r], q.row, q.answered = rc, 0, true
	case fault.MayBeAbsent() && q.vaultAnswers:
		q.heard[r], q.row = archive.Receipt{Remote: r, Status: archive.Absent}, 0
	case fault.MayBeAbsent():
		q.unknownNumbers[r] = fault
		q.row++
	default:
		q.fault = fault
		q.row++
	}
}

// askSingly asks about every registration that was not heard of.
func (c *Engine) askSingly(ctx context.Context, vault archive.VaultID, es []ledger.Entry, q *questions) {
	var g errgroup.Group
	g.SetLimit(askSingles)
	now := c.cfg.Now().Wall
	for _, e := range es {
		for _, r := range e.DueQuestions(now) {
			g.Go(func() error {
				if ctx.Err() != nil || !q.isOpen(r) {
					return nil
				}
				// A GET: what it says counts only once the outcome is committed; a crash before that asks again.
				noting, request := apicall.NoteRequests(ctx)
				rc, err := c.asker().Status(noting, vault, r)
				rc.Request = request.Last()
				if q.record(r, rc, err); err == nil {
					c.statusLists.noteAnswered(vault, r)
				}
				return nil
			})
		}
	}
	_ = g.Wait() // what failed stands in q
}

// updateAskBreaker closes the breaker after an answer, and opens it after faults that are not of one document.
func (c *Engine) updateAskBreaker(vault archive.VaultID, q *questions) {
	switch {
	case q.fault != nil && (q.fault.Outcome != apicall.OutcomeUnknown || q.fault.Overloaded()):
		c.openBreaker(AskTarget(vault), causeOf(q.fault), q.fault.RetryAfter)
	case q.answered:
		c.closeBreaker(AskTarget(vault))
	case q.fault != nil && c.breakers.CountFault(AskTarget(vault)):
		c.openBreaker(AskTarget(vault), causeOf(q.fault), q.fault.RetryAfter)
	}
}

// eventsOf returns what was heard about an entry's registrations.
func (c *Engine) eventsOf(e ledger.Entry, heard map[archive.RemoteID]archive.Receipt) []ledger.Event {
	var evs []ledger.Event
	taken := map[archive.RemoteID]bool{}
	for _, r := range e.Registrations {
		rc, ok := heard[r.Ticket.Remote]
		if !ok || rc.Remote != r.Ticket.Remote || taken[rc.Remote] {
			continue
		}
		taken[rc.Remote] = true
		evs = append(evs, c.statusEvents(e, rc)...)
	}
	return evs
}

// statusEvents returns the events by which an entry hears one word about a registration of its own.
func (c *Engine) statusEvents(e ledger.Entry, rc archive.Receipt) []ledger.Event {
	if !rc.ID.IsZero() && !isOwnID(e, rc.ID) {
		c.cfg.Log.Error("status answer names another document; it is not believed", "key", e.Key, "bumId", rc.Remote)
		return nil
	}
	if rc.Status == archive.Unfamiliar {
		c.logUnknownWord(rc.Raw)
	}
	return []ledger.Event{ledger.StatusSeen{Receipt: rc, Grace: c.cfg.Grace, NotBefore: c.nextPollAt(e)}}
}

// maxUnknownWords bounds the memory and the log where a service answers with ever new words.
const maxUnknownWords = 32

// unknownWords are the status words that were logged because vaultd does not
// know them. A restart forgets them, which costs a log line for each word.
type unknownWords struct {
	mu     sync.Mutex
	logged map[string]bool // guarded by mu
}

// logUnknownWord logs a status word that vaultd does not know: each word once,
// and at the bound that no further one is logged.
func (c *Engine) logUnknownWord(word string) {
	c.unknownWords.mu.Lock()
	defer c.unknownWords.mu.Unlock()
	logged := c.unknownWords.logged
	if logged[word] || len(logged) == maxUnknownWords {
		return
	}
	logged[word] = true
	c.cfg.Log.Error("the service said a status word that vaultd does not know; it counts as still in progress", "word", fmt.Sprintf("%.60q", word))
	if len(logged) == maxUnknownWords {
		c.cfg.Log.Error("the service uses many status words that vaultd does not know; no further one is logged until a restart. Ask the provider what they mean", "words", maxUnknownWords)
	}
}

// isOwnID reports whether an identity in an answer is one the entry ever had.
func isOwnID(e ledger.Entry, id archive.ID) bool {
	n, is := e.GenerationOf(id)
	return is && n <= e.Generation
}

// nextPollAt returns when to ask about e next: seldom and more seldom, and in doubt
// never so often that two answers could not count as two.
func (c *Engine) nextPollAt(e ledger.Entry) time.Time {
	n := min(int(e.Attempt), 20)
	wait := min(c.cfg.PollMax, c.cfg.PollMin<<n)
	if wait <= 0 {
		wait = c.cfg.PollMax
	}
	if e.State != ledger.Uploaded && e.State != ledger.Sending {
		wait = max(wait, c.cfg.Grace/24)
	}
	spread := wait / 8 * time.Duration(e.Key[15]) / 256
	every := c.cfg.PollMin / 2
	for every > 0 && every <= wait/16 {
		every *= 2
	}
	return alignToRound(e, c.cfg.Now().Wall.Add(wait+spread), every)
}

// alignToRound moves the time of a question to the next round of its vault. Documents that came together are spread over time,
// each by its key, and yet asked about with others of its round: for several one list may answer. Two vaults, of whichever
// installation, have their rounds at different moments.
func alignToRound(e ledger.Entry, at time.Time, every time.Duration) time.Time {
	if every <= 0 {
		return at
	}
	own := fnv.New64a()
	own.Write([]byte(e.Vault)) // always succeeds
	offset := time.Duration(own.Sum64() % uint64(every))
	return at.Add(every - 1 - offset).Truncate(every).Add(offset)
}
