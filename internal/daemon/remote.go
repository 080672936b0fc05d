package daemon

import (
	"context"
	"errors"
	"io"
	"os"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/vaultapi"
)

// Remote lets the conductor speak through a vault client.
func Remote(c *vaultapi.Client) ingest.Vault { return remote{c} }

type remote struct{ client *vaultapi.Client }

// Register implements ingest.Vault.
func (r remote) Register(ctx context.Context, v archive.VaultID, frozen []archive.Request) (ingest.Answer, error) {
	a, err := r.client.Register(ctx, v, frozen)
	return ingest.Answer{Tickets: a.Tickets, Barred: a.Barred, Crossed: a.Crossed, Foreign: a.Foreign}, RemoteError(err)
}

// Upload implements ingest.Vault.
func (r remote) Upload(ctx context.Context, t archive.Ticket, p archive.Package) (archive.Digest, string, error) {
	sent, etag, err := r.client.Upload(ctx, t, p, func() (io.ReadCloser, error) { return os.Open(p.Path) })
	return sent, etag, RemoteError(err)
}

// Status implements ingest.Vault.
func (r remote) Status(ctx context.Context, v archive.VaultID, id archive.RemoteID) (archive.Receipt, error) {
	rc, err := r.client.Status(ctx, v, id)
	return rc, RemoteError(err)
}

// StatusList implements ingest.Vault.
func (r remote) StatusList(ctx context.Context, v archive.VaultID) ([]archive.Receipt, error) {
	list, err := r.client.StatusList(ctx, v)
	return list, RemoteError(err)
}

// RemoteError translates an error of the client; anything else stays what it is.
func RemoteError(err error) error {
	e, ok := errors.AsType[*vaultapi.Error](err)
	if !ok {
		return err
	}
	outcome := map[vaultapi.Outcome]ingest.Outcome{
		vaultapi.Unanswered: ingest.Unanswered, vaultapi.NotSent: ingest.NotSent,
		vaultapi.TurnedAway: ingest.TurnedAway, vaultapi.Refused: ingest.Refused,
	}[e.Outcome]
	return &ingest.RemoteError{Outcome: outcome, Code: e.Code, Text: e.Text, RetryAfter: e.RetryAfter,
		Overload: e.Overload, MayBeAbsent: e.MayBeAbsent, Denied: e.Denied, Expired: e.Expired, Damaged: e.Damaged, Err: e}
}
