package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/operator"
	"vaultd/internal/recovery"
	"vaultd/internal/selfcheck"
	"vaultd/internal/statedir"
)

// LaterError says that a drop folder was worked on by a later state of the ledger than
// the backup is: another vaultd may be at work there.
type LaterError struct {
	Drop           string
	Folder, Backup uint64 // epochs
}

// Error implements error.
func (e *LaterError) Error() string {
	return fmt.Sprintf("drop %s was worked on by a later state of this ledger (epoch %d) than the backup is (epoch %d)", e.Drop, e.Folder, e.Backup)
}

// UnmarkedError says that nobody can tell which ledger the drop folders belong to.
type UnmarkedError struct{ What string }

// Error implements error.
func (e *UnmarkedError) Error() string { return e.What }

// Restored is what Restore did.
type Restored struct {
	boltledger.RestoreResult
	Away []string // drop folders that could not be marked; their turn comes when they are opened
}

// Restore puts a backup, which is open for reading, in the place of the ledger
// in cfg.StateDir, in safe mode. With takeOver the result is of a later epoch
// than any drop folder bears, and they are marked so: whoever else works there
// stops. Of cfg it needs StateDir, Environment, BaseURL, Others, Location, Drops and
// Now. It refuses with *BindingError, *drop.ForeignError, *LaterError and
// *statedir.InUseError, and then nothing has changed.
//
// After a crash the old ledger is there or the new one; the same call does it
// again.
func Restore(ctx context.Context, cfg Config, backup *os.File, takeOver bool, p operator.Person) (out Restored, err error) {
	held, err := statedir.Lock(cfg.StateDir, "vaultd restore")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, durable.CloseLock(held)) }()
	if cfg.Executable != "" {
		// A probe that is too slow refuses nothing: this process reads the whole copy below.
		if err := selfcheck.Probe(ctx, cfg.Executable, backup); err != nil && !errors.Is(err, selfcheck.ErrSlow) {
			return out, err
		}
	}
	info, _, err := boltledger.InspectOpenFile(backup)
	if err != nil {
		return out, err
	}
	if err := CheckBinding(info, cfg.Environment, cfg.BaseURL, cfg.Others); err != nil {
		return out, err
	}
	ours := drop.OwnershipMark{LedgerID: info.ID, Environment: info.Environment, Epoch: max(info.Epoch, 1), ReceiptKeys: info.ReceiptKeys}
	last, away, err := cfg.readMarks(ours)
	if err != nil {
		return out, err
	}
	taken, err := dropwork.ReadTakenOver(cfg.StateDir) // by a drop folder that may be away now
	if err != nil {
		return out, err
	}
	epoch := ours.Epoch
	switch {
	case takeOver:
		epoch = max(last.epoch, ours.Epoch, taken) + 1
	case last.epoch > ours.Epoch:
		return out, &LaterError{Drop: last.drop, Folder: last.epoch, Backup: ours.Epoch}
	}
	if ours.ReceiptKeys, err = cfg.listKeysAfter(info.ReceiptKeys); err != nil {
		return out, err
	}
	by, note := p.Sign()
	// After a crash here the old ledger is in its place or the new one. The folders are marked later: until then whoever works there goes on.
	out.RestoreResult, err = boltledger.Restore(ctx, boltledger.ReplacementConfig{
		Dir: cfg.StateDir, Backup: backup, Epoch: epoch, ReceiptKeys: ours.ReceiptKeys,
		Mark: ledger.Mark{Name: ledger.MarkRestored, By: by, At: cfg.Now().Wall}, Note: note, Fault: cfg.LedgerFault,
	})
	if err != nil {
		return out, err
	}
	out.Away = away
	for _, d := range cfg.Drops {
		if !takeOver {
			break
		}
		ours.Epoch = epoch
		// After a crash between two folders the others still bear the earlier epoch: the daemon marks each when it opens it.
		if err := drop.TakeOverFolder(d.Path, ours); errors.Is(err, drop.ErrUnavailable) {
			continue
		} else if err != nil {
			return out, err
		}
	}
	return out, nil
}

// listKeysAfter lists the receipt keys of a ledger that is restored: its own,
// which signs, then those in the marks of the drop folders. So receipts that a
// rebuild or a later state signed since the backup stay known.
func (cfg Config) listKeysAfter(backup []string) ([]string, error) {
	found, _, err := cfg.readReceiptKeys()
	keys := slices.Clone(backup[:min(len(backup), 1)])
	for _, key := range slices.Concat(found, backup) {
		if len(keys) < drop.MostReceiptKeys && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys, err
}

// CheckBinding returns a [*BindingError] where a ledger was made for another
// environment or service, or has used another address of one of the others. The
// first [Daemon.Run] binds a service that is new to the ledger.
func CheckBinding(info ledger.Info, environment, baseURL string, others []ledger.Address) error {
	if info.Environment != environment {
		return &BindingError{"environment", info.Environment, environment}
	}
	if strings.TrimSuffix(info.BaseURL, "/") != strings.TrimSuffix(baseURL, "/") {
		return &BindingError{"service", info.BaseURL, baseURL}
	}
	for _, a := range others {
		for _, bound := range info.Others {
			if bound.Key == a.Key && strings.TrimSuffix(bound.URL, "/") != strings.TrimSuffix(a.URL, "/") {
				return &BindingError{a.Key, bound.URL, a.URL}
			}
		}
	}
	return nil
}

// latestMark is the drop folder that the latest state of the ledger worked on.
type latestMark struct {
	drop  string
	epoch uint64
}

// readMarks looks at whose the drop folders are. One of another ledger or environment is
// refused; away are those that are not there.
func (cfg Config) readMarks(ours drop.OwnershipMark) (last latestMark, away []string, err error) {
	for _, d := range cfg.Drops {
		m, ok, err := drop.ReadMark(d.Path)
		switch {
		case errors.Is(err, drop.ErrUnavailable):
			away = append(away, d.Name)
			continue
		case err != nil:
			return last, nil, fmt.Errorf("drop %s: %w", d.Name, err)
		case !ok:
			continue
		}
		foreign := drop.OwnershipMark{LedgerID: ours.LedgerID, Environment: ours.Environment, Epoch: m.Epoch}
		if err := drop.CheckMark(d.Path, foreign); err != nil {
			return last, nil, fmt.Errorf("drop %s: %w", d.Name, err)
		}
		if m.Epoch > last.epoch {
			last = latestMark{d.Name, m.Epoch}
		}
	}
	return last, away, nil
}

// Rebuilt is what Rebuild did.
type Rebuilt struct {
	recovery.Report
	Info      ledger.Info
	Kept      string   // name of the file that was there before; may be empty
	Untrusted []string // drop folders with untrusted keys, and why: their receipts count as unsigned
}

// Rebuild makes a new ledger of what lies in the drop folders, which name the old one:
// every one of them must be there. The result is of a later epoch and in safe mode. A
// ledger that is there and whole is not replaced: ledger.ErrExists. Of cfg it needs
// what Restore does, and SpoolMinFree.
//
// After a crash the same call does it again from the beginning; the new ledger gets its
// place only when it is whole.
func Rebuild(ctx context.Context, cfg Config, p operator.Person) (out Rebuilt, err error) {
	held, err := statedir.Lock(cfg.StateDir, "vaultd rebuild")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, durable.CloseLock(held)) }()
	if err := checkReplaceable(ctx, cfg); err != nil {
		return out, err
	}
	ours, err := cfg.findOwner()
	if err != nil {
		return out, err
	}
	if ours.ReceiptKeys, out.Untrusted, err = cfg.readReceiptKeys(); err != nil {
		return out, err
	}
	ours.Epoch++
	by, note := p.Sign()
	r, err := boltledger.BeginReplacement(ctx, boltledger.ReplacementConfig{
		Dir: cfg.StateDir, Epoch: ours.Epoch,
		Info: ledger.Info{ID: ours.LedgerID, Environment: ours.Environment, BaseURL: cfg.BaseURL, Others: cfg.Others, Created: cfg.Now().Wall, Epoch: ours.Epoch, ReceiptKeys: ours.ReceiptKeys},
		Mark: ledger.Mark{Name: ledger.MarkRebuilt, By: by, At: cfg.Now().Wall}, Note: note, Fault: cfg.LedgerFault,
	})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, r.Discard()) }()
	out.Info = r.Ledger.Info()
	// Only a ledger in its place signs anything, and the daemon writes its key
	// into the mark of each drop folder that it opens. Until then the marks
	// keep the keys of the lost one, and a call that fails adds none.
	shared, lost := sharedForCommand(cfg, r.Ledger), out.Info
	lost.ReceiptKeys = ours.ReceiptKeys
	shared.Takeover = dropwork.NewTakeover(cfg.StateDir, fixedInfo(lost), shared.Log, shared.EndProcess)
	drops, done, err := openDrops(cfg, shared)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, done()) }()
	out.Report, err = recovery.Rebuild(ctx, recovery.Config{
		Book: r.Ledger, Committer: r.Ledger, Drops: drops, Now: cfg.Now, Environment: ours.Environment, Adopt: true,
		ReceiptKeys: out.Info.ReceiptKeys, Doubt: &recovery.Doubt{Since: cfg.Now().Wall},
	})
	if err != nil {
		return out, err
	}
	// The new ledger gets its place by one rename. After a crash before it the call begins anew, and after it the ledger is there, in safe mode.
	out.Kept, err = r.Commit(ctx)
	return out, err
}

// fixedInfo is what a ledger says of itself, where the marks of the drop folders
// are to say something else.
type fixedInfo ledger.Info

func (i fixedInfo) Info() ledger.Info { return ledger.Info(i) }

// checkReplaceable refuses to make a ledger anew where one is there that can be
// worked with. A start refuses a damaged one, and one whose pages cannot be
// checked in time.
func checkReplaceable(ctx context.Context, cfg Config) error {
	l, err := boltledger.Open(boltledger.Config{Dir: cfg.StateDir, Location: cfg.Location, Probe: cfg.probe(ctx)})
	if _, damaged := errors.AsType[*ledger.DamageError](err); damaged || errors.Is(err, ledger.ErrMissing) || errors.Is(err, selfcheck.ErrSlow) {
		return nil
	}
	if err != nil {
		return err
	}
	if s, is := l.SafeMode(); is && s.Mark == ledger.MarkDamaged {
		return l.Close()
	}
	found, err := l.Verify(ctx)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%w, and it is whole", ledger.ErrExists)
	}
	return errors.Join(err, l.Close())
}

// findOwner finds which ledger the drop folders belong to.
func (cfg Config) findOwner() (ours drop.OwnershipMark, err error) {
	from := ""
	for _, d := range cfg.Drops {
		m, ok, err := drop.ReadMark(d.Path)
		switch {
		case err != nil:
			return ours, fmt.Errorf("drop %s: %w", d.Name, err)
		case !ok:
			continue
		case m.Environment != cfg.Environment:
			return ours, &BindingError{"environment", m.Environment, cfg.Environment}
		case from != "" && m.LedgerID != ours.LedgerID:
			return ours, &UnmarkedError{fmt.Sprintf("drop %s belongs to ledger %s, drop %s to ledger %s: one ledger is made anew at a time", from, ours.LedgerID, d.Name, m.LedgerID)}
		}
		from, m.Epoch = d.Name, max(m.Epoch, ours.Epoch)
		ours = m
	}
	if from == "" {
		return ours, &UnmarkedError{"no drop folder bears the mark of a ledger, so that there is nothing to make one of"}
	}
	return ours, nil
}

// readReceiptKeys returns the keys of the lost ledger, by the marks of the drop
// folders, and which marks are untrusted. With one more key the list still fits
// into a mark.
func (cfg Config) readReceiptKeys() (keys, untrusted []string, err error) {
	for _, d := range cfg.Drops {
		found, err := drop.ReadReceiptKeys(d.Path)
		if why, is := errors.AsType[*drop.UntrustedKeysError](err); is {
			untrusted = append(untrusted, fmt.Sprintf("drop %s: %v", d.Name, why))
			continue
		}
		if errors.Is(err, drop.ErrUnavailable) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("drop %s: %w", d.Name, err)
		}
		for _, key := range found {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys[:min(len(keys), drop.MostReceiptKeys-1)], untrusted, nil
}

// OpenDrops opens every drop folder for a command that works while no daemon does.
func OpenDrops(cfg Config, l *boltledger.Ledger) (drops []recovery.Origin, done func() error, err error) {
	return openDrops(cfg, sharedForCommand(cfg, l))
}

func openDrops(cfg Config, shared *dropwork.Shared) (drops []recovery.Origin, done func() error, err error) {
	var handles []*dropwork.Handle
	done = func() error {
		var errs []error
		for _, h := range handles {
			errs = append(errs, h.Close())
		}
		return errors.Join(errs...)
	}
	for _, settings := range cfg.Drops {
		settings.Rules.Vault = settings.Vault
		h := dropwork.NewHandle(settings, shared)
		handles = append(handles, h)
		if err := h.Open(); err != nil {
			return nil, nil, errors.Join(err, done())
		}
		f, err := h.Current()
		if err != nil {
			return nil, nil, errors.Join(err, done())
		}
		drops = append(drops, settings.ForRecovery(f))
	}
	return drops, done, nil
}

// sharedForCommand is what drop folders need of a command that works while no daemon does. A disk that cannot be trusted fails the call itself.
func sharedForCommand(cfg Config, l *boltledger.Ledger) *dropwork.Shared {
	log := cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	ignore := func(error) {}
	return &dropwork.Shared{
		StateDir: cfg.StateDir, Environment: cfg.Environment, Location: cfg.Location, Now: cfg.Now, Log: log, FileFault: cfg.FileFault,
		MinFree: cfg.SpoolMinFree, Ledger: l, Takeover: dropwork.NewTakeover(cfg.StateDir, l, log, ignore), EndProcess: ignore, OnChange: func(string) {},
	}
}
