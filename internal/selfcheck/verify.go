package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
)

// Verification says how a ledger is verified.
type Verification struct {
	StateDir string // holds the checkpoint
	Program  string // version of this program: a checkpoint of another one is not used
	Whole    bool   // reads everything, whatever the checkpoint says
	Now      func() time.Time

	// Executable is a program that calls RunChild, for the check of a copy in a
	// child process. Empty: this process makes it.
	Executable string

	quiet bool // one core works
}

// Verified is what a verification found.
type Verified struct {
	Problems []ledger.Problem // with pages, records, indexes and the chain
	Proven   bool             // false: damage kept the promises from being checked
	Report   proof.Report     // of the promises
	Basis    *Basis           // what it rests on; nil: the whole ledger was read
	Lines    uint64           // of the journal that were read
	Resting  uint64           // entries at rest that were not read again

	// The journal is not the one that was verified before, in words; empty: it is, or nothing is known of one. It then leaves no
	// checkpoint: the former one is the evidence.
	OtherPast string

	NotUsed  string // why there is a checkpoint and the whole ledger was read all the same; may be empty
	NotSaved string // why no checkpoint is left for the next time; empty: one is, or something was found
}

// OK reports whether nothing was found.
func (v Verified) OK() bool {
	return len(v.Problems) == 0 && v.OtherPast == "" && v.Proven && len(v.Report.Findings) == 0 && v.Report.Omitted == 0
}

// HasUnreadPages reports whether pages are damaged: reading what is on them may
// end a process.
func (v Verified) HasUnreadPages() bool {
	return slices.ContainsFunc(v.Problems, func(p ledger.Problem) bool { return p.Where == pagesWord })
}

// pagesWord is where problems with pages are said to be.
const pagesWord = "pages"

// IsDamaged reports whether the ledger itself is wrong: its records, or what they promise.
func (v Verified) IsDamaged() bool { return len(v.Problems) > 0 || !v.Report.OK() }

// Basis is the earlier verification that one rests on.
type Basis struct {
	Line   uint64         // of the journal: what came behind it was read now
	Hash   archive.Digest // of the chain there
	At     time.Time      // when what came before it was verified last
	Whole  time.Time      // when the whole ledger was read last
	ToLine uint64         // of the journal, when the whole ledger was read last
}

// maxAge is how long the whole ledger may have been read ago: records rot without a line about them.
const maxAge = 7 * 24 * time.Hour

// VerifyCopy verifies a copy of a ledger that is at work. keep bytes stay free on
// its disk. After an error the ledger is unchecked.
func (o Verification) VerifyCopy(ctx context.Context, l *boltledger.Ledger, keep int64) (Verified, error) {
	f, v, err := o.CheckCopy(ctx, l, keep)
	if err != nil {
		return v, err
	}
	return v, f.Close()
}

// CheckCopy is VerifyCopy that returns the copy, which the caller closes. One
// copy is made and checked at a time; other callers wait. Damage that one copy
// shows must show in a second one: the memory of the first may have been at
// fault.
func (o Verification) CheckCopy(ctx context.Context, l *boltledger.Ledger, keep int64) (f *os.File, v Verified, err error) {
	end, err := l.AwaitCopyTurn(ctx)
	if err != nil {
		return nil, v, err
	}
	defer end()
	f, v, err = o.checkOneCopy(ctx, l, keep)
	if err != nil || !v.IsDamaged() {
		return f, v, err
	}
	if err = f.Close(); err == nil {
		f, v, err = o.checkOneCopy(ctx, l, keep)
	}
	if err != nil {
		return nil, v, fmt.Errorf("a copy of the ledger looks damaged, and a second one could not be checked: %w", err)
	}
	return f, v, nil
}

func (o Verification) checkOneCopy(ctx context.Context, l *boltledger.Ledger, keep int64) (f *os.File, v Verified, err error) {
	if f, err = l.Copy(ctx, keep); err != nil {
		return nil, v, err
	}
	if v, err = o.VerifyFile(ctx, f, l.Location()); err != nil {
		return nil, v, errors.Join(err, f.Close())
	}
	return f, v, nil
}

// VerifyFile verifies an open copy of a ledger, whose days are counted by loc.
func (o Verification) VerifyFile(ctx context.Context, f *os.File, loc *time.Location) (Verified, error) {
	if o.Executable == "" {
		return o.verifyHere(ctx, f, loc)
	}
	return o.verifyInChild(ctx, f, loc)
}

// verifyHere verifies a copy in this process.
func (o Verification) verifyHere(ctx context.Context, f *os.File, loc *time.Location) (v Verified, err error) {
	err = boltledger.ReadOpenFile(f, o.StateDir, loc, boltledger.UncheckedPages, func(c *boltledger.Ledger) (err error) {
		v, err = o.Verify(ctx, c)
		return err
	})
	if broken, ok := errors.AsType[*ledger.DamageError](err); ok { // it cannot even be opened
		return damagedPages(broken.What), nil
	}
	return v, err
}

// damagedPages is what is found where nothing more can be read.
func damagedPages(what string) (v Verified) {
	v.Problems = []ledger.Problem{{Where: pagesWord, What: what}}
	return v.withoutReplay("pages are damaged")
}

// Verify verifies a ledger that stays as it is meanwhile: from its checkpoint on
// where there is one that can be used, and otherwise the whole. If nothing is
// found it leaves a checkpoint for the next time. It changes nothing else.
func (o Verification) Verify(ctx context.Context, l *boltledger.Ledger) (v Verified, err error) {
	c, past, err := o.readCheckpoint(l)
	switch {
	case o.Whole:
		err = nil
	case c != nil:
		if v, err = o.verifySince(ctx, l, c); err == nil {
			return v, nil
		}
	}
	if err != nil && !isUnusable(err) {
		return v, err
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	v, err = o.verifyWhole(ctx, l, past)
	v.NotUsed = why
	return v, err
}

// verifyWhole reads everything. past is what the checkpoint says of the journal, whether it can be used or not; nil: there is none.
func (o Verification) verifyWhole(ctx context.Context, l *boltledger.Ledger, past *title) (v Verified, err error) {
	var p *replayed
	began := o.Now()
	problems, sound, err := l.VerifyWhole(ctx, o.quiet, func() {
		r := replayWhole(ctx, l)
		p = &r
	})
	if err != nil {
		return v, err
	}
	v.Problems = problems
	if err := v.setReplay(p); err != nil {
		return v, err
	}
	v.Lines = v.Report.Lines
	if v.OtherPast, err = v.comparePast(l, past); err != nil {
		return v, err
	}
	if v.OK() {
		v.NotSaved = textOf(o.writeCheckpoint(ctx, l, &checkpoint{At: began, Whole: began, ToLine: sound.Head.N, Records: sound}, p.state))
	}
	return v, nil
}

// comparePast says in words that the journal is another one than the one that was verified before; empty: it is not. Who puts
// a ledger back by vaultd leaves a line about it. Without one somebody else did, or wrote the past anew.
func (v Verified) comparePast(l *boltledger.Ledger, past *title) (string, error) {
	if past == nil || !v.Proven || v.Report.PutBack != past.PutBack {
		return "", nil
	}
	head, ok, err := l.HeadAt(past.Line)
	if err != nil || ok && head.Hash.String() == past.Hash {
		return "", err
	}
	return fmt.Sprintf("line %d is not the one with hash %s that was verified at %s, and no line tells that the ledger was put back since; %s holds that line and hash: keep it, or remove it where you know why",
		past.Line, past.Hash, past.At.UTC().Format(time.RFC3339), CheckpointName), nil
}

func (o Verification) verifySince(ctx context.Context, l *boltledger.Ledger, c *checkpoint) (v Verified, err error) {
	var p *replayed
	began := o.Now()
	problems, sound, err := l.VerifySince(ctx, c.Records, func() {
		r := replaySince(ctx, l, c.Replay)
		p = &r
	})
	if err != nil {
		return v, err
	}
	v.Problems = problems
	if err := v.setReplay(p); err != nil {
		return v, err
	}
	v.Basis = &Basis{Line: c.Records.Head.N, Hash: c.Records.Head.Hash, At: c.At, Whole: c.Whole, ToLine: c.ToLine}
	if v.Lines = 0; v.Report.Lines > v.Basis.Line {
		v.Lines = v.Report.Lines - v.Basis.Line
	}
	v.Resting = c.Replay.AtRest // none of them changed, or there would be no state
	if v.OK() {
		v.NotSaved = textOf(o.writeCheckpoint(ctx, l, &checkpoint{At: began, Whole: c.Whole, ToLine: c.ToLine, Records: sound}, p.state))
	}
	return v, nil
}

// setReplay takes in what the replay found; nil: it was not made, because pages are damaged.
func (v *Verified) setReplay(p *replayed) error {
	if p == nil {
		*v = v.withoutReplay("pages are damaged")
		return nil
	}
	if broken, ok := errors.AsType[*ledger.DamageError](p.err); ok {
		*v = v.withoutReplay(broken.What)
		return nil
	}
	if p.err != nil {
		return p.err
	}
	v.Report, v.Proven = p.report, true
	return nil
}

// withoutReplay adds why the promises were not checked.
func (v Verified) withoutReplay(why string) Verified {
	v.Problems = append(v.Problems, ledger.Problem{Where: "promises", What: "could not be checked: " + why})
	return v
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// isUnusable reports whether an error says that a checkpoint cannot be used, and not that the check failed.
func isUnusable(err error) bool {
	_, unusable := errors.AsType[*unusableError](err)
	return unusable || errors.Is(err, boltledger.ErrOtherJournal) || errors.Is(err, proof.ErrRestChanged) || errors.Is(err, proof.ErrPutBack)
}

// unusableError says why a checkpoint cannot be used.
type unusableError struct{ why string }

func (e *unusableError) Error() string { return e.why }

func unusable(format string, a ...any) error { return &unusableError{fmt.Sprintf(format, a...)} }
