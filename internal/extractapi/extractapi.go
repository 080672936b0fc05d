// Package extractapi is the client of the data extract interface of the service, with its whole wire format. It lists extracts and
// their files, downloads a file, reads the table definition, and acknowledges an extract.
//
// It reads leniently: unknown fields, numbers for texts, times with or without a zone, a list alone or within an object. A list
// of which a part could not be read is never called whole, so nobody concludes from it that something is gone. It sends strictly.
//
// It keeps nothing on disk, and it repeats neither a download nor an acknowledgement. So a crash leaves nothing here. A download
// may have been counted by the service, and an acknowledgement may have been done, wherever the call began: the caller commits an
// intent before each. What is certain after a failed call is the Outcome of its [apicall.Error].
package extractapi

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// The scopes that a token needs: to read, and to acknowledge.
const (
	ReadScope  = "dataExtract.read"
	WriteScope = "dataExtract.write"
)

// The parts of paths. The specification writes the path of an acknowledgement with the first word in one place and with the second
// one in another.
const (
	plural   = "dataExtracts"
	singular = "dataExtract"
)

// Client speaks the data extract interface. It is safe for concurrent use.
type Client struct {
	api      *apicall.API
	singular atomic.Bool // an acknowledgement with the plural path was answered by 404, and one with the singular path was not
}

// New returns a client whose calls api makes. It has the account of this interface, which is another one than those of a vault and
// of the PDF upload.
func New(api *apicall.API) *Client { return &Client{api: api} }

// Limits of answers, in bytes.
const (
	listAnswer        = 16 << 20
	filesAnswer       = 16 << 20
	definitionAnswer  = 32 << 20
	acknowledgeAnswer = 256 << 10
)

var acceptJSON = http.Header{"Accept": {"application/json"}}

// getJSON makes a GET below the address of all extracts.
func (c *Client) getJSON(ctx context.Context, op string, limit int64, more http.Header, query url.Values, path ...string) (*apicall.Answer, error) {
	header := acceptJSON.Clone()
	for name, values := range more {
		header[name] = values
	}
	return c.api.Do(ctx, apicall.Request{Op: op, Path: append([]string{"v1", plural}, path...), Query: query, Limit: limit, Header: header})
}

// Definition reads the table definition of the day. If it is JSON of a form
// that is not known, it has Raw and no tables: the specification does not show
// the form, and what was sent is kept all the same.
func (c *Client) Definition(ctx context.Context) (archive.TableDefinition, error) {
	const op = "read the table definition"
	ans, err := c.getJSON(ctx, op, definitionAnswer, nil, nil, "specification", "tableDefinition")
	if err != nil {
		return archive.TableDefinition{}, err
	}
	defer ans.Release()
	d, err := ReadDefinition(ans.Body)
	if err != nil {
		return archive.TableDefinition{}, ans.Unreadable(op, err)
	}
	return d, nil
}
