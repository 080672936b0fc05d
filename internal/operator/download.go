package operator

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
)

// Downloader is the part of the archive's client that a download needs.
type Downloader interface {
	Download(ctx context.Context, v archive.VaultID, r archive.RemoteID, w io.Writer) (int64, archive.Digest, error)
}

// Downloads fetches archived packages, for which the provider may charge. Every download of a person goes through it: it is
// a line of the journal before the call and one after it, and the month's budget is checked before the call.
type Downloads struct {
	Ledger  Ledger
	Archive Downloader
	Budget  uint64 // downloads in a calendar month of the ledger's time zone; 0 forbids them
	Now     func() time.Time
}

// Fetched is a package that came from the archive.
type Fetched struct {
	Size   int64
	SHA256 archive.Digest
	Used   uint64 // downloads of this month, with this one
}

// Fetch downloads the package of a registration into w. judge says what it is
// by holding it against what was sent: one of the ledger's outcomes. The error
// is a [*ledger.BudgetError] where the month has no download left; then nothing
// was asked of the archive. If the download itself failed, the error is the
// client's.
func (d Downloads) Fetch(ctx context.Context, v archive.VaultID, r archive.RemoteID, by Person, w io.Writer, judge func(Fetched) (outcome string)) (f Fetched, err error) {
	who, note := by.Sign()
	mark := ledger.Mark{Vault: v, Remote: r, By: who, At: d.Now()}
	// A crash after this commit leaves a download that is counted and has no outcome: it may have been charged.
	if f.Used, err = d.Ledger.IntendFetch(ctx, mark, note, d.Budget); err != nil {
		return f, err
	}
	var failed error
	// The call may be charged. After a crash during it the intent stands in the journal, and nothing is downloaded again by itself.
	f.Size, f.SHA256, failed = d.Archive.Download(ctx, v, r, w)
	mark.Name, mark.Bytes, mark.Cause, mark.By.Reason = ledger.MarkFetched, f.Size, ledger.FetchFailed, archive.Digest{}
	if failed == nil {
		mark.Cause = judge(f)
	}
	mark.At = d.Now()
	// The outcome is recorded even when the asker has gone away. After a crash
	// before these commits the download counts, without an outcome; between
	// them the entry has it already, so that each report that asks for
	// attention agrees with status.
	ctx = context.WithoutCancel(ctx)
	return f, errors.Join(failed, d.noteCompared(ctx, v, r, mark.Cause), d.Ledger.CommitMark(ctx, mark, nil))
}

// noteCompared notes with the entry of a download that was compared whether the
// archive has what was sent.
func (d Downloads) noteCompared(ctx context.Context, v archive.VaultID, r archive.RemoteID, outcome string) error {
	var ev ledger.Event = ledger.ContentCompared{Remote: r}
	switch outcome {
	case ledger.FetchFailed, ledger.FetchNotCompared:
		return nil
	case ledger.FetchDiffers:
		ev = ledger.ContentDiffered{Remote: r}
	}
	key, ok, err := d.Ledger.FindByRemote(r)
	if err != nil || !ok {
		return err
	}
	e, ok, err := d.Ledger.Entry(key)
	if err != nil || !ok || e.Vault != v {
		return err
	}
	res, err := d.Ledger.Apply(ctx, ledger.Change{Key: key, Fact: true, Events: []ledger.Event{ev}, At: archive.Instant{Wall: d.Now()}})
	if err == nil {
		err = res[0].Err
	}
	if errors.Is(err, ledger.ErrIllegal) { // already known as the same, or as another, or not of what is archived
		return nil
	}
	return err
}

// Sampled is which archived documents were compared with what was sent, and which come next.
type Sampled struct {
	Past   proof.Downloads
	Counts proof.Sample
	Next   []archive.Key // those that nobody ever downloaded first, the oldest of them first; those that were compared last
}

// Sample reads the journal and the entries, and chooses at most n documents to compare next. A document that was compared
// already is chosen only where all others are: of those, the one whose last download is the longest ago comes first. One
// whose download failed comes between the two kinds.
func (d Downloads) Sample(ctx context.Context, n int) (s Sampled, err error) {
	err = d.Ledger.Lines(1, func(_ uint64, stored []byte) error {
		l, err := ledger.ParseLine(stored)
		if err == nil {
			s.Past.AddLine(l) // what is wrong with it is for the check of the ledger to say
		}
		return errors.Join(err, context.Cause(ctx))
	})
	if err != nil {
		return s, err
	}
	var failed, compared []downloaded // as many as were ever downloaded
	err = d.Ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		if e.State != ledger.Archived || e.ArchivedRemote == "" {
			return context.Cause(ctx)
		}
		s.Counts.Add(e, &s.Past)
		if e.Package.IsZero() { // learnt from the archive alone: there is nothing to compare it with
			return context.Cause(ctx)
		}
		switch line := s.Past.LastLine(e.Vault, e.ArchivedRemote); {
		case s.Past.LastComparison(e.Vault, e.ArchivedRemote) != "":
			compared = append(compared, downloaded{e.Key, line})
		case line > 0:
			failed = append(failed, downloaded{e.Key, line})
		case len(s.Next) < n:
			s.Next = append(s.Next, e.Key)
		}
		return context.Cause(ctx)
	})
	for _, again := range [][]downloaded{failed, compared} {
		slices.SortFunc(again, func(a, b downloaded) int { return cmp.Compare(a.line, b.line) })
		for _, one := range again[:min(len(again), n-len(s.Next))] {
			s.Next = append(s.Next, one.key)
		}
	}
	return s, err
}

// downloaded is a document that was downloaded before, and the last line of the journal about it.
type downloaded struct {
	key  archive.Key
	line uint64
}
