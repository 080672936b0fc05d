package daemon

import (
	"context"
	"io"
	"os"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/vaultapi"
)

// Remote lets the conductor speak through a vault client.
func Remote(c *vaultapi.Client) ingest.Vault { return remote{c} }

type remote struct{ *vaultapi.Client }

// Register implements ingest.Vault.
func (r remote) Register(ctx context.Context, v archive.VaultID, frozen []archive.Request) (ingest.Answer, error) {
	a, err := r.Client.Register(ctx, v, frozen)
	return ingest.Answer{Tickets: a.Tickets, Barred: a.Barred, Crossed: a.Crossed, Foreign: a.Foreign}, err
}

// Upload implements ingest.Vault.
func (r remote) Upload(ctx context.Context, t archive.Ticket, p archive.Package) (archive.Digest, string, error) {
	return r.Client.Upload(ctx, t, p, func() (io.ReadCloser, error) { return os.Open(p.Path) })
}
