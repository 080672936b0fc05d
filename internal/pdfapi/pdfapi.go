// Package pdfapi is the client of the PDF upload interface of the service, with its whole wire format. It registers the upload of
// one PDF, and uploads it.
//
// It reads leniently: the specification shows neither the names of the answer's fields nor how long an upload address works. It
// sends strictly: the bytes of a registration are frozen, and a PDF goes with its length and digest. The interface has no status,
// no list and no key that makes a second call the same as the first. So this package never says what became of an upload whose
// answer is missing: nothing can be asked.
//
// It keeps no state, and it repeats neither a registration nor an upload. So a crash leaves nothing here. What may have been done
// follows from what the caller committed before the call; what is certain after a failed call is the Outcome of its
// [apicall.Error].
package pdfapi

import (
	"cmp"
	"context"
	"strings"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// DefaultPath is the path of the interface below the base address.
const DefaultPath = "/v2/pdf/invoiceUpload"

// Scope is what a token needs for this interface.
const Scope = "importDocuments.write"

const (
	// untoldLife is how long a ticket is used whose address does not tell how long it works. The specification shows no time.
	untoldLife = 15 * time.Minute
	// longestLife is how long any ticket is used at most. Addresses are signed with credentials that may end before they say.
	longestLife = time.Hour

	contentType = "application/pdf"
)

// Config is what a Client works with. API has the account of this interface, which is another one than that of a vault.
type Config struct {
	API   *apicall.API
	Store *apicall.Store
	Now   func() archive.Instant // asked before a registration leaves
	Path  string                 // below the base address; empty: DefaultPath
}

// Client speaks the PDF upload interface. It is safe for concurrent use.
type Client struct {
	api   *apicall.API
	store *apicall.Store
	now   func() archive.Instant
	path  []string // read only
}

// New returns a client for cfg. API, Store and Now are needed.
func New(cfg Config) *Client {
	path := strings.Split(strings.Trim(cmp.Or(cfg.Path, DefaultPath), "/"), "/")
	return &Client{api: cfg.API, store: cfg.Store, now: cfg.Now, path: path}
}

// Upload sends a PDF to its ticket's address in one PUT, as [apicall.Store.UploadPackage] says.
func (c *Client) Upload(ctx context.Context, t archive.Ticket, p archive.Package) (sent archive.Digest, etag string, err error) {
	// This is the PUT. If the process dies in it, the PDF may be stored. The entry is committed as sending before. Nothing can be
	// asked, so the next start sends nothing by itself unless the configuration allows the same bytes to the same address.
	return c.store.UploadPackage(ctx, t, p, apicall.UploadRules{ContentType: contentType, AsksFirst: true})
}

// OmitsMD5 says what [apicall.Store.OmitsMD5] does.
func (c *Client) OmitsMD5(address archive.PresignedURL) bool { return c.store.OmitsMD5(address) }

// HostsWithoutMD5 says what [apicall.Store.HostsWithoutMD5] does.
func (c *Client) HostsWithoutMD5() []string { return c.store.HostsWithoutMD5() }
