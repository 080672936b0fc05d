package vaultapi

import (
	"context"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// Upload sends a package to its ticket's address in one PUT, as [apicall.Store.UploadPackage] says.
func (c *Client) Upload(ctx context.Context, t archive.Ticket, p archive.Package) (sent archive.Digest, etag string, err error) {
	// This is the PUT. If the process dies in it, bytes may be stored. The entry is committed as sending before, and the next start
	// sends the same bytes to the same URL while the ticket is valid, or asks what became of them.
	return c.store.UploadPackage(ctx, t, p, apicall.UploadRules{ContentType: c.contentType})
}

// OmitsMD5 says what [apicall.Store.OmitsMD5] does.
func (c *Client) OmitsMD5(address archive.PresignedURL) bool { return c.store.OmitsMD5(address) }

// HostsWithoutMD5 says what [apicall.Store.HostsWithoutMD5] does.
func (c *Client) HostsWithoutMD5() []string { return c.store.HostsWithoutMD5() }
