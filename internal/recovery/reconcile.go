package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
)

// Config is what is compared, and what is known of the ledger's past.
type Config struct {
	Book      Book
	Committer Committer
	Service   Service
	Drops     []Drop        // every configured one; their vaults are asked
	Grace     time.Duration // after it nothing can be in flight any more (unclear_grace)
	Now       func() archive.Instant

	Environment string // as the ledger was made for: receipts of another one say nothing here

	// Doubt is what the ledger cannot know of; nil: it was there all the while, and the
	// comparison changes nothing but entries that did not know of content which the archive has of them.
	Doubt *Doubt
	// Accept decides whether an index that was not read to its end counts as complete, because a person says so; it is
	// asked once for each such vault, and what it accepts is durable when it returns. Nil: none counts.
	Accept func(context.Context, VaultReport) (bool, error)
	// Adopt says that nobody else takes folders now: those that lie claimed without an
	// entry get one, in doubt.
	Adopt bool
}

// Doubt is the time of which a ledger knows nothing.
type Doubt struct {
	From  time.Time // of the last line that it has from before; zero: it was made anew
	Since time.Time // when it was put back
	Told  time.Time // the archive's clock when everything since was first asked for; zero: it was not yet
}

// comparison is one comparison.
type comparison struct {
	Config
	report Report

	newest          map[archive.VaultID]newest        // registrations that were surely made before
	unpacked        map[archive.ID]archive.Key        // entries in doubt that are not packed yet, by the identity they will get
	unreadable      map[archive.VaultID]bool          // folders of it could not be looked at: what the archive has may be theirs
	nextGenerations map[archive.ID]archive.Key        // the generations that entries in doubt may have gone on to
	reaches         map[archive.VaultID]bool          // the status list shows everything since
	covers          map[archive.VaultID]bool          // it does, unless it lags behind
	visible         map[archive.VaultID]time.Duration // for how long the archive could show it, when it was asked
	successes       archive.RemoteSet                 // what status lists and single answers show as archived
	shown           []archive.RemoteSet               // what the index of each vault shows
	anonymous       map[archive.VaultID]unidentified  // what nobody can tell the identity of
	foreign         archive.RemoteSet                 // registrations whose clientUUID is not that of the entry here
	reported        archive.RemoteSet                 // that the archive has a document which the ledger does not know
	notified        archive.RemoteSet                 // that its entry was told of
	uncounted       map[archive.Key]Finding           // by entry: what the archive holds of it and it did not count
	keptAt          map[archive.Key]string            // where the folders of entries in doubt lie, by their receipts
	returnedTo      map[archive.Key]string            // where they lie that were given back
	unsettled       map[archive.Key]bool              // entries of which something that was decided could not be committed
	pending         []ledger.Change                   // decided, not yet committed
	resting         resting                           // entries of which nothing is open; none with a doubt
	restless        []archive.Key                     // all others of the compared vaults; none with a doubt
}

type newest struct {
	remote archive.RemoteID
	sent   time.Time
	ahead  time.Duration // this machine's clock was then, of the archive's; zero: it was not, or nobody knows
}

// unidentified are documents at the archive whose identity it does not tell.
type unidentified struct {
	numbers map[string]bool // of invoices
	any     bool            // one has not even a number
}

// Reconcile holds the ledger against the archive: every number that this shows is compared with all the
// registrations of the ledger, and an entry is told of content that it does not count. With a doubt it also tells the entries of registrations
// that they did not know of, makes an entry for each archived document that has none, and clears the
// doubt from those that the archive's answers speak for. Its error is the first call that failed: then
// nothing is known of what was not asked, and it should be done again.
func Reconcile(ctx context.Context, c Config) (Report, error) {
	p := &comparison{
		Config: c, newest: map[archive.VaultID]newest{}, unpacked: map[archive.ID]archive.Key{}, unreadable: map[archive.VaultID]bool{}, nextGenerations: map[archive.ID]archive.Key{},
		reaches: map[archive.VaultID]bool{}, visible: map[archive.VaultID]time.Duration{}, covers: map[archive.VaultID]bool{}, successes: archive.RemoteSet{}, anonymous: map[archive.VaultID]unidentified{},
		foreign: archive.RemoteSet{}, reported: archive.RemoteSet{}, notified: archive.RemoteSet{}, uncounted: map[archive.Key]Finding{}, keptAt: map[archive.Key]string{}, returnedTo: map[archive.Key]string{}, unsettled: map[archive.Key]bool{},
	}
	if c.Doubt != nil { // what lies in the folders is known before the archive is asked whose its documents are
		if err := p.readFolders(ctx); err != nil {
			return p.report, err
		}
	}
	if err := p.surveyEntries(ctx); err != nil {
		return p.report, err
	}
	for _, d := range c.Drops {
		p.unreadable[d.Vault] = p.unreadable[d.Vault] || d.Folder == nil
	}
	for _, d := range c.Drops {
		if slices.ContainsFunc(p.report.Vaults, func(r VaultReport) bool { return r.Vault == d.Vault }) {
			continue
		}
		one, err := p.compareVault(ctx, d)
		p.report.Vaults = append(p.report.Vaults, one)
		if err != nil {
			return p.report, fmt.Errorf("compare vault %s: %w", d.Vault, err)
		}
	}
	if err := p.concludeEntries(ctx); err != nil {
		return p.report, err
	}
	return p.report, p.commitChanges(ctx)
}

// surveyEntries looks at all entries once, before the archive is asked. Without a doubt no registration is missing here: what the
// archive shows and no entry bears is told as it is.
func (p *comparison) surveyEntries(ctx context.Context) error {
	if p.Doubt == nil {
		return p.separateResting()
	}
	return p.Book.Entries(archive.Key{}, false, func(e ledger.Entry) error {
		for _, r := range e.Registrations {
			if sent := r.Ticket.Sent.Wall; p.isBeforeDoubt(sent) && sent.After(p.newest[e.Vault].sent) {
				n := newest{remote: r.Ticket.Remote, sent: sent}
				if !r.Ticket.Date.IsZero() {
					n.ahead = max(0, sent.Sub(r.Ticket.Date))
				}
				p.newest[e.Vault] = n
			}
		}
		if !e.NeedsReconcile {
			return nil
		}
		if e.State == ledger.Discovered {
			return p.foreseeIdentity(ctx, e)
		}
		ahead := generations
		if !e.State.IsOpen() {
			ahead = 2
		}
		for g := int(e.Generation) + 1; g <= int(e.Generation)+ahead && !e.FirstID.IsZero(); g++ {
			p.nextGenerations[e.FirstID.Generation(g)] = e.Key
		}
		return nil
	})
}

// generations is how many steps ahead the lost ledger may have gone with an entry that had not ended.
const generations = 8

// foreseeIdentity finds the identity that a claimed folder will get once it is packed: what the archive has of it must
// not be taken for somebody else's. Where another entry stands for that identity, it is told, and the folder waits.
func (p *comparison) foreseeIdentity(ctx context.Context, e ledger.Entry) error {
	for _, d := range p.Drops {
		if d.Name != e.Drop || d.Folder == nil {
			continue
		}
		dir, _, err := d.Folder.OpenClaimed(e.Key)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if _, mount := errors.AsType[*durable.MountError](err); mount { // it cannot be read just now
			p.unreadable[e.Vault] = true
			p.report.Unpacked++
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
		if _, refused := errors.AsType[*packager.Refusal](err); !refused { // it cannot be read just now
			p.unreadable[e.Vault] = true
			p.report.Unpacked++
		}
		return ctx.Err()
	}
	p.unreadable[e.Vault] = true
	return nil
}

// expectIdentity notes the identity that e will get.
func (p *comparison) expectIdentity(e ledger.Entry, s packager.SealedFolder) error {
	key, known, err := p.Book.FindByID(s.ID)
	if err == nil && known {
		var first ledger.Entry
		first, known, err = p.Book.Entry(key)
		known = known && ledger.CompareIdentity(first, ledger.Sealed{ID: s.ID, Content: s.Content, Metadata: archive.Sum(s.Metadata)}, string(e.Vault)) != ledger.Proceed
	}
	if err != nil || known {
		return err
	}
	p.unpacked[s.ID] = e.Key
	for g := 1; g <= generations; g++ {
		p.unpacked[s.ID.Generation(g)] = e.Key
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

// addChange notes what is to be committed, and commits it once there is enough of it.
func (p *comparison) addChange(ctx context.Context, c ledger.Change) error {
	const batch = 256
	c.At = p.Now()
	if p.pending = append(p.pending, c); len(p.pending) < batch {
		return nil
	}
	return p.commitChanges(ctx)
}

// hasPendingChange reports whether a change that is not committed yet is of the entry, or opens one for the same document:
// what is decided next must be decided after it.
func (p *comparison) hasPendingChange(key archive.Key, rc archive.Receipt) bool {
	return slices.ContainsFunc(p.pending, func(c ledger.Change) bool {
		opens, ok := c.Events[0].(ledger.Recovered)
		return c.Key == key || ok && (opens.ID == rc.ID || opens.Remote == rc.Remote)
	})
}

// commitChanges makes the changes. An entry that moved on meanwhile is left as it is, and in doubt: the next comparison
// decides anew.
func (p *comparison) commitChanges(ctx context.Context) error {
	cs := p.pending
	if p.pending = nil; len(cs) == 0 {
		return nil
	}
	rs, err := p.Committer.Apply(ctx, cs...)
	if err != nil {
		return err
	}
	for i, r := range rs {
		if r.Err == nil {
			continue
		}
		p.unsettled[cs[i].Key] = true
		why := r.Err.Error()
		if _, stale := errors.AsType[*ledger.StaleError](r.Err); stale {
			why = "it changed meanwhile"
		}
		e, _, err := p.Book.Entry(cs[i].Key)
		if err != nil {
			return err
		}
		p.report.addWaiting(e, time.Time{}, why)
	}
	return nil
}
