package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
)

// Config is what is compared, and what is known about the ledger's past.
type Config struct {
	Book      EntryReader
	Committer Committer
	Service   Service
	Drops     []Origin      // all that are configured; their vaults are asked
	Grace     time.Duration // after it no upload can be running any more (unclear_grace)
	Now       func() archive.Instant

	Environment string   // of the ledger: receipts of another environment are ignored here
	ReceiptKeys []string // of the ledger: what a receipt says counts where it is signed with one of them

	// Doubt is the time that the ledger cannot know about. Nil: the ledger was complete all the time. Then the comparison
	// only tells entries of content that the archive has and that they do not count.
	Doubt *Doubt
	// Accept decides whether an index that was not read to its end counts as complete, because a person says so. It is
	// called once for each such vault. Its decision is durable when it returns. Nil: such an index never counts.
	Accept func(context.Context, VaultReport) (bool, error)
	// Adopt says that nobody else claims folders now. Each claimed folder without an entry gets an entry, in doubt.
	Adopt bool
}

// Doubt is the time that a ledger knows nothing about.
type Doubt struct {
	From  time.Time // of the last line from before; zero: the ledger was made anew
	Since time.Time // when the ledger was put back
	Told  time.Time // the archive's clock at the first comparison since; zero: there was none yet
}

// comparison is the state of one comparison.
type comparison struct {
	Config
	report Report
	vaults map[archive.VaultID]*vaultFacts

	// What is known of entries in doubt.
	unpacked        map[archive.ID]archive.Key        // those that are not packed yet, by the identity they will get
	nextGenerations map[archive.ID]archive.Key        // the generations that the lost part of the ledger may have reached
	keptAt          map[archive.Key]string            // where the folder lies, by its receipt
	returnedTo      map[archive.Key]drop.PlacedFolder // the folder that was returned

	// What the archive said.
	successes archive.RemoteSet       // archived, by a status list or a single answer
	shown     []archive.RemoteSet     // archived, by the index of each vault
	foreign   archive.RemoteSet       // of another clientUUID than the entry here
	reported  archive.RemoteSet       // archived and unknown to the ledger; each is reported once
	notified  archive.RemoteSet       // content that an entry was told of; each is told once
	uncounted map[archive.Key]Finding // by entry: content that the entry did not count

	pending   []ledger.Change      // decided, not yet committed
	unsettled map[archive.Key]bool // entries with a decision that could not be committed
}

// vaultFacts is what is known of one vault.
type vaultFacts struct {
	newest       newest        // the newest registration that was made before the doubt
	unreadable   bool          // folders of it cannot be read: an unknown document may belong to one of them
	reaches      bool          // the status list shows every registration since the last line of the ledger
	covers       bool          // it does, unless the list lags behind
	visible      time.Duration // for how long the archive could show what the ledger does not know
	unidentified unidentified
}

type newest struct {
	remote archive.RemoteID
	sent   time.Time
	ahead  time.Duration // how far this machine's clock was ahead of the archive's; zero: it was not, or nobody knows
}

// unidentified are archived documents whose identity the archive does not tell.
type unidentified struct {
	numbers map[string]bool // of their invoices
	any     bool            // one has no number
}

func newComparison(c Config) *comparison {
	return &comparison{
		Config: c, vaults: map[archive.VaultID]*vaultFacts{},
		unpacked: map[archive.ID]archive.Key{}, nextGenerations: map[archive.ID]archive.Key{}, keptAt: map[archive.Key]string{}, returnedTo: map[archive.Key]drop.PlacedFolder{},
		successes: archive.RemoteSet{}, foreign: archive.RemoteSet{}, reported: archive.RemoteSet{}, notified: archive.RemoteSet{},
		uncounted: map[archive.Key]Finding{}, unsettled: map[archive.Key]bool{},
	}
}

// factsOf returns the facts of a vault, which may be changed.
func (p *comparison) factsOf(v archive.VaultID) *vaultFacts {
	if p.vaults[v] == nil {
		p.vaults[v] = &vaultFacts{}
	}
	return p.vaults[v]
}

// Reconcile compares the ledger with the archive. Each registration that the archive shows is compared with all
// registrations of the ledger, and an entry is told of content that it does not count. With a doubt, entries are also told of
// registrations that they did not know, each archived document without an entry gets one, and entries that the answers speak
// for are cleared of the doubt. The error is that of the first call that failed: then nothing is concluded from what was not
// asked, and the comparison should be repeated.
func Reconcile(ctx context.Context, c Config) (Report, error) {
	p := newComparison(c)
	if c.Doubt != nil {
		// The folders come first: their receipts and sidecars tell whose the archive's documents are. A crash after this
		// leaves entries in doubt; the next comparison finds them in the ledger.
		if err := p.readFolders(ctx); err != nil {
			return p.report, err
		}
	}
	if err := p.surveyEntries(ctx); err != nil {
		return p.report, err
	}
	// Several drops may deliver to one vault. All of them must be known before its first answer is judged.
	for _, d := range c.Drops {
		if d.Folder == nil {
			p.factsOf(d.Vault).unreadable = true
		}
	}
	for _, d := range c.Drops {
		if d.Vault == "" || slices.ContainsFunc(p.report.Vaults, func(r VaultReport) bool { return r.Vault == d.Vault }) {
			continue
		}
		one, err := p.compareVault(ctx, d)
		p.report.Vaults = append(p.report.Vaults, one)
		if err != nil {
			return p.report, fmt.Errorf("compare vault %s: %w", d.Vault, err)
		}
	}
	// Conclusions come last: they need the answers of all vaults. A crash before the last commit leaves the other entries in
	// doubt, and nothing of them is sent or removed until the next comparison.
	if err := p.concludeEntries(ctx); err != nil {
		return p.report, err
	}
	return p.report, p.commitChanges(ctx)
}

// surveyEntries reads all entries once, before the archive is asked, and collects
// what the answers are judged by. Without a doubt there is nothing to collect.
func (p *comparison) surveyEntries(ctx context.Context) error {
	if p.Doubt == nil {
		return nil
	}
	return p.Book.EntriesOldestFirst(func(e ledger.Entry) error {
		for _, r := range e.Registrations {
			if sent := r.Ticket.Sent.Wall; p.isBeforeDoubt(sent) && sent.After(p.factsOf(e.Vault).newest.sent) {
				n := newest{remote: r.Ticket.Remote, sent: sent}
				if !r.Ticket.Date.IsZero() {
					n.ahead = max(0, sent.Sub(r.Ticket.Date))
				}
				p.factsOf(e.Vault).newest = n
			}
		}
		if !e.NeedsReconcile || e.Vault == "" {
			return nil
		}
		if e.State == ledger.Discovered {
			return p.foreseeIdentity(ctx, e)
		}
		// The lost part of the ledger may have registered later generations of the identity. An answer about one of them
		// belongs to this entry, and to no new one.
		for n, id := range e.FirstID.Successors() {
			if n > e.Generation && !e.FirstID.IsZero() {
				p.nextGenerations[id] = e.Key
			}
		}
		return nil
	})
}

// foreseeIdentity finds the identity that a claimed folder will get when it is
// packed. So a document that the archive has of it does not get an entry of its
// own. If another entry already has that identity, the answer goes to that
// entry.
func (p *comparison) foreseeIdentity(ctx context.Context, e ledger.Entry) error {
	d, ok := p.dropOf(e)
	if !ok || d.Folder == nil {
		p.factsOf(e.Vault).unreadable = true
		return nil
	}
	dir, _, err := d.Folder.OpenClaimed(e.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, mount := errors.AsType[*durable.MountError](err); mount {
		p.noteUnreadable(e.Vault)
		return nil
	}
	if err != nil {
		return fmt.Errorf("open a claimed folder of drop %s: %w", d.Name, err)
	}
	defer dir.Close() // read-only
	s, err := packager.ValidateFolder(ctx, dir.Root(), d.Rules)
	if err == nil {
		return errors.Join(p.expectIdentity(e, s), ctx.Err())
	}
	// A folder that would be refused gets no identity. Any other error may pass.
	if _, refused := errors.AsType[*packager.Refusal](err); !refused {
		p.noteUnreadable(e.Vault)
	}
	return ctx.Err()
}

// noteUnreadable notes a claimed folder that cannot be read now. Until it can be, any unknown document of its vault may be its.
func (p *comparison) noteUnreadable(v archive.VaultID) {
	p.factsOf(v).unreadable = true
	p.report.Unpacked++
}

// expectIdentity notes the identity that e will get.
func (p *comparison) expectIdentity(e ledger.Entry, s packager.Sealed) error {
	key, known, err := p.Book.FindByID(s.ID)
	if err == nil && known {
		var first ledger.Entry
		first, known, err = p.Book.Entry(key)
		will := ledger.Sealed{ID: s.ID, IDFromSidecar: s.HasChosenID, Content: s.Content, Metadata: s.MetadataDigest}
		known = known && ledger.CompareIdentity(first, will, e.Route, string(e.Vault)) != ledger.Proceed && !ledger.IsIDChosenByOther(first, will, e.Route, string(e.Vault))
	}
	if err != nil || known {
		return err
	}
	p.unpacked[s.ID] = e.Key
	for id := range s.ID.Later(s.HasChosenID) {
		p.unpacked[id] = e.Key
	}
	p.report.Unpacked++
	return nil
}

func (p *comparison) isBeforeDoubt(t time.Time) bool {
	return !t.IsZero() && !t.After(p.Doubt.From)
}

// findOwner finds the entry that a clientUUID belongs to.
func (p *comparison) findOwner(id archive.ID) (e ledger.Entry, ok bool, err error) {
	key, ok, err := p.Book.FindByID(id)
	if err == nil && !ok {
		key, ok = p.nextGenerations[id]
	}
	if err != nil || !ok {
		return e, false, err
	}
	return p.Book.Entry(key)
}

// addChange adds a change to the pending ones, and commits them when there are enough.
func (p *comparison) addChange(ctx context.Context, c ledger.Change) error {
	const batch = 256
	c.At = p.Now()
	if p.pending = append(p.pending, c); len(p.pending) < batch {
		return nil
	}
	return p.commitChanges(ctx)
}

// hasPendingChange reports whether a pending change is of the entry, or opens an entry for the same document. Then it must be
// committed before the next decision about that document.
func (p *comparison) hasPendingChange(key archive.Key, rc archive.Receipt) bool {
	return slices.ContainsFunc(p.pending, func(c ledger.Change) bool {
		opens, ok := c.Events[0].(ledger.Recovered)
		return c.Key == key || ok && (opens.ID == rc.ID || opens.Remote == rc.Remote)
	})
}

// commitChanges commits the pending changes. An entry that another step changed meanwhile stays as it is, and in doubt: the
// next comparison decides again.
func (p *comparison) commitChanges(ctx context.Context) error {
	cs := p.pending
	if p.pending = nil; len(cs) == 0 {
		return nil
	}
	// Each change is one transaction of entry and journal line. A crash here commits some of the changes or none; the next
	// comparison finds the committed ones in the ledger and decides the others again.
	rs, err := p.Committer.Apply(ctx, cs...)
	if err != nil {
		return err
	}
	for i, r := range rs {
		if r.Err == nil {
			continue
		}
		// The change of this entry was refused. Nothing is concluded about it in this comparison.
		p.unsettled[cs[i].Key] = true
		why := r.Err.Error()
		if _, stale := errors.AsType[*ledger.StaleError](r.Err); stale {
			why = "it changed meanwhile"
		}
		e, _, err := p.Book.Entry(cs[i].Key)
		if err != nil {
			return err
		}
		if e.IsUnidentified() {
			p.report.Unread.add(Finding{Key: e.Key, Text: e.Drop + "/" + e.Folder + ": " + why})
		}
		p.report.addWaiting(e, time.Time{}, why)
	}
	return nil
}
