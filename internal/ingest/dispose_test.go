package ingest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// slowRemover takes its time to remove a folder.
type slowRemover struct {
	*folders
	takes time.Duration
}

func (m slowRemover) Dispose(context.Context, ledger.Entry, ledger.Document) (string, error) {
	time.Sleep(m.takes)
	return "", nil
}

// TestDispose_I3_WhatIsDueMeanwhileIsAskedAbout: the limit allowed the folders
// that were due. Others become due while those are removed, and are not
// removed before the limit has allowed them too.
func TestDispose_I3_WhatIsDueMeanwhileIsAskedAbout(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{})
		d := r.configured("V")
		d.Disposes, d.Grace, d.Mover = true, 30*day, slowRemover{r.folders("V"), 25 * time.Minute}
		var asked []int
		r.cfg.DisposalLimit = func(_ string, due int) error { asked = append(asked, due); return nil }
		r.start()
		r.drop("V", 3)
		r.pass(time.Hour)
		r.dropNamed("V", "later", 5)
		r.pass(time.Hour)
		kit.Want(t, "folders that are kept", r.sourcesOf("V")[ledger.Kept], 8)
		r.s.suspend(30*day - 110*time.Minute) // the first three are due since some minutes, the others in about 50
		r.pass(day)
		kit.Want(t, "folders that are gone", r.sourcesOf("V")[ledger.Gone], 8)
		kit.Want(t, "numbers that the limit was asked about", asked, []int{3, 5})
	})
}

// oldArchive says of each document that it was archived long ago.
type oldArchive struct{ *service }

func (s oldArchive) Status(ctx context.Context, v archive.VaultID, r archive.RemoteID) (archive.Receipt, error) {
	rc, err := s.service.Status(ctx, v, r)
	rc.Updated = rc.Updated.AddDate(-1, 0, 0)
	return rc, err
}

// TestDispose_I3_GraceBeginsWhenTheFolderIsKept: the grace is for the users of
// the folder. The archive's clock does not shorten it.
func TestDispose_I3_GraceBeginsWhenTheFolderIsKept(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		r := build(t, s)
		d := r.configured("V")
		d.Disposes, d.Grace = true, 30*day
		route := r.cfg.Routes[ledger.Vault]
		route.Asker = oldArchive{s}
		r.cfg.Routes[ledger.Vault] = route
		r.start()
		r.drop("V", 1)
		r.pass(29 * day)
		kit.Want(t, "sources before the grace is over", r.sourcesOf("V"), sources{ledger.Kept: 1})
		r.pass(2 * day)
		kit.Want(t, "sources after it", r.sourcesOf("V"), sources{ledger.Gone: 1})
	})
}
