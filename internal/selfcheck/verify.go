package selfcheck

import (
	"cmp"
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
	for isSecond := false; ; isSecond = true {
		if f, err = l.Copy(ctx, keep); err == nil {
			if v, err = o.VerifyFile(ctx, f); err != nil {
				err = errors.Join(err, f.Close())
			}
		}
		if err != nil && isSecond {
			err = fmt.Errorf("a copy of the ledger looks damaged, and a second one could not be checked: %w", err)
		}
		if err != nil || isSecond || !v.IsDamaged() {
			return f, v, err
		}
		if err := f.Close(); err != nil {
			return nil, v, err
		}
	}
}

// VerifyFile verifies an open copy of a ledger.
func (o Verification) VerifyFile(ctx context.Context, f *os.File) (v Verified, err error) {
	if o.Executable != "" {
		v, err = askChild(ctx, o.Executable, f, question{How: o, At: o.Now()})
	} else {
		err = boltledger.CheckOpenFile(ctx, f, time.UTC, func(c *boltledger.Ledger) (err error) {
			v, err = o.Verify(ctx, c)
			return err
		})
	}
	if broken, ok := errors.AsType[*ledger.DamageError](err); ok { // no more than that can be read
		return damagedPages(broken.What), nil
	}
	return v, err
}

// damagedPages is what is found where nothing more can be read.
func damagedPages(what string) (v Verified) {
	v.Problems = []ledger.Problem{{Where: pagesWord, What: what}}
	return v.withoutReplay("pages are damaged")
}

// rememberedAtMost is how many entries a check may remember that names what
// differs, some 300 bytes each.
const rememberedAtMost = 300_000

// Verify verifies a ledger that stays as it is meanwhile: from its checkpoint
// on where there is one that can be used and nothing is found so, and otherwise
// the whole. If nothing is found it leaves a checkpoint for the next time. It
// changes nothing else.
func (o Verification) Verify(ctx context.Context, l *boltledger.Ledger) (v Verified, err error) {
	past, unusable := o.readCheckpoint(l)
	if past != nil {
		unusable = o.checkUse(l, past)
	}
	if past != nil && unusable == nil && !o.Whole {
		v, next, err := o.check(ctx, l, past)
		if err != nil {
			return v, err
		}
		if unusable = v.differsFrom(past); unusable == nil {
			v.NotSaved = textOf(o.writeCheckpoint(ctx, next))
			return v, nil
		}
	}
	v, next, err := o.check(ctx, l, nil)
	if err != nil {
		return v, err
	}
	if !o.Whole {
		v.NotUsed = textOf(unusable)
	}
	if v.OtherPast, err = v.comparePast(l, past); err != nil || !v.OK() {
		return v, err
	}
	if err = errors.New("the ledger is in safe mode"); !v.Report.Safe {
		err = o.writeCheckpoint(ctx, next)
	}
	v.NotSaved = textOf(err)
	return v, nil
}

// check reads a ledger once: what came behind a checkpoint, or where that is
// nil the whole. next is the checkpoint that it can leave.
func (o Verification) check(ctx context.Context, l *boltledger.Ledger, since *checkpoint) (v Verified, next checkpoint, err error) {
	next = checkpoint{title: o.titleOf(l), At: o.Now()}
	next.Whole, next.ToLine = next.At, l.Head().N
	if since == nil {
		next.Records, next.Sums, err = v.read(ctx, l, l, since)
		v.Lines = v.Report.Lines
		// Only a check that remembers everything can name all that differs.
		if balance := l.Balance(); err == nil && v.Proven && !v.OK() && balance.Seen <= rememberedAtMost {
			v.Problems = nil
			_, _, err = v.read(ctx, l, nil, since)
		}
		return v, next, err
	}
	next.Whole, next.ToLine = since.Whole, since.ToLine
	next.Records, next.Sums, err = v.read(ctx, l, l, since)
	head := since.Records.Head
	v.Basis = &Basis{Line: head.N, Hash: head.Hash, At: since.At, Whole: since.Whole, ToLine: since.ToLine}
	v.Lines = max(v.Report.Lines, head.N) - head.N
	v.Resting = since.Records.Resting.Balance.Seen
	return v, next, err
}

// read is one pass over the ledger. keeper looks entries up for it; nil: it remembers all.
func (v *Verified) read(ctx context.Context, l *boltledger.Ledger, keeper proof.Keeper, since *checkpoint) (boltledger.Verified, proof.Sums, error) {
	var records *boltledger.Verified
	var sums *proof.Sums
	if since != nil {
		records, sums = &since.Records, &since.Sums
	}
	replay := proof.NewReplay(keeper, sums)
	found, err := l.Check(ctx, records, replay)
	if err != nil {
		return found.Sound, proof.Sums{}, err
	}
	balance := l.Balance()
	v.Report = replay.Finish(l.Head(), &balance)
	if broken, ok := errors.AsType[*ledger.DamageError](replay.Err()); ok {
		found.Unread = cmp.Or(found.Unread, broken.What)
	} else if err := replay.Err(); err != nil {
		return found.Sound, proof.Sums{}, err
	}
	v.Problems, v.Proven = found.Problems, found.Unread == ""
	if !v.Proven {
		v.Report = proof.Report{}
		*v = v.withoutReplay(found.Unread)
	}
	return found.Sound, replay.Sums(), nil
}

// differsFrom says why the checkpoint that a check went on from is of no use:
// something is not as it was, and only a check of the whole ledger tells what.
func (v Verified) differsFrom(c *checkpoint) error {
	switch {
	case len(v.Problems) > 0:
		return errors.New(v.Problems[0].What)
	case len(v.Report.Findings) > 0:
		return errors.New(v.Report.Findings[0].String())
	case v.Report.PutBack != c.Sums.PutBack || v.Report.Safe:
		return errors.New("the ledger was put back or found damaged")
	}
	return nil
}

// comparePast says in words that the journal is another one than the one that
// was verified before; empty: it is not. Who puts a ledger back by vaultd
// leaves a line about it. Without one somebody else did, or wrote the past
// anew.
func (v Verified) comparePast(l *boltledger.Ledger, past *checkpoint) (string, error) {
	if past == nil || !v.Proven || v.Report.PutBack != past.Sums.PutBack {
		return "", nil
	}
	then := past.Records.Head
	head, ok, err := l.HeadAt(then.N)
	if err != nil || ok && head == then {
		return "", err
	}
	return fmt.Sprintf("line %d is not the one with hash %s that was verified at %s, and no line tells that the ledger was put back since; %s holds that line and hash: keep it, or remove it where you know why",
		then.N, then.Hash, past.At.UTC().Format(time.RFC3339), CheckpointName), nil
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
