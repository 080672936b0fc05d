package networkapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// Received is a document as the network gives it.
type Received struct {
	Document archive.RemoteID // empty: not told
	Kind     archive.NetworkKind
	Files    []archive.FileRef
	Links    []archive.Link
	Data     json.RawMessage // the business content, as it came
	Content  Content         // what of Data is read here
}

// FetchDocument fetches a document by its number. raw is the whole answer, as it came. A document that is read lacks nothing that
// the answer tells: where one of its files cannot be named, it is an error, because it would look whole without that file.
//
// The outcome of its error says nothing about a document: a fetch changes nothing at the network. [IsUnknownDocument] tells
// whether the network does not know the number.
func (c *Client) FetchDocument(ctx context.Context, kind archive.NetworkKind, id archive.RemoteID) (raw []byte, received Received, err error) {
	const op = "fetch a document"
	path, err := c.documentPath(kind, id)
	if err != nil {
		return nil, received, requestError(op, err.Error())
	}
	err = inEitherVersion(path, func(path []string) (err error) {
		raw, received, err = c.fetchDocumentAt(ctx, op, path, id)
		return err
	})
	if err == nil {
		received.Kind = kind
	}
	return raw, received, err
}

// inEitherVersion calls fetch with a path of version 2, and where the network does not know what is asked for, with that of version 1. Assumption: version 1
// may know what version 2 does not, because both stay available. The error is that of version 2 where neither knows it.
func inEitherVersion(path []string, fetch func(path []string) error) error {
	err := fetch(path)
	if path[0] != secondVersion || !isNotKnown(err) {
		return err
	}
	if first := fetch(slices.Concat([]string{firstVersion}, path[1:])); !isNotKnown(first) {
		return first // also a fault that says nothing about what is asked for, as that the network has too much to do
	}
	return err
}

// isNotKnown reports whether the network says that it has nothing under a path.
func isNotKnown(err error) bool {
	e := apicall.AsError(err)
	return err != nil && !e.IsWebPage() && (e.Status == http.StatusNotFound || IsUnknownDocument(err))
}

// fetchDocumentAt fetches a document from a path.
func (c *Client) fetchDocumentAt(ctx context.Context, op string, path []string, id archive.RemoteID) (raw []byte, received Received, err error) {
	// This is a GET of the whole document. If the process dies in it, nothing is held and nothing was acknowledged: the next start
	// fetches it again.
	ans, err := c.api.Do(ctx, apicall.Request{Op: op, Path: path, Limit: documentAnswer, Header: acceptJSON})
	if err != nil {
		return nil, received, err
	}
	defer ans.Release()
	received, err = readReceived(ans.Body)
	switch {
	case err != nil:
	case received.Document != "" && received.Document != id:
		err = fmt.Errorf("the answer is the document %q", received.Document)
	case path[0] == firstVersion:
		err = received.checkFirstVersion()
	}
	if err != nil {
		return nil, Received{}, ans.Unreadable(op, err)
	}
	return bytes.Clone(ans.Body), received, nil
}

// checkFirstVersion refuses an answer of version 1 that may have files which are not read: it may name them in other words, of which the specification
// shows none. Its links name them as well.
func (r Received) checkFirstVersion() error {
	links := 0
	for _, l := range r.Links {
		if l.Relation == fileRelation {
			links++
		}
	}
	if links > len(r.Files) {
		return fmt.Errorf("it has %d links to files and names %d", links, len(r.Files))
	}
	return nil
}

// IsUnknownDocument reports whether the network said that it does not know the number of a document. A 404 without its code may as
// well be about the path.
func IsUnknownDocument(err error) bool {
	e := apicall.AsError(err)
	return err != nil && e.Status/100 == 4 && codeOf(e) == codeUnknownDocument
}

// readReceived reads a document as the network gives it.
func readReceived(body []byte) (Received, error) {
	f, err := apicall.ReadFields(body, "bumId", "bumid", "fileRefs", "fileRef", "links", "data")
	if err != nil {
		return Received{}, err
	}
	refs, err := f.Either("fileRefs", "fileRef")
	if err != nil {
		return Received{}, err
	}
	if !isObject(f["data"]) {
		return Received{}, errors.New("the answer has no data")
	}
	var r Received
	number, err := f.Either("bumId", "bumid")
	if err != nil {
		return Received{}, err
	}
	if told := apicall.ReadText(number); told != "" {
		if r.Document, err = archive.ParseRemoteID(told); err != nil {
			return Received{}, err
		}
	}
	if r.Files, err = readFileRefs(refs); err != nil {
		return Received{}, err
	}
	r.Links = readLinks(f["links"], fileRelation)
	r.Data = f["data"]
	r.Content, err = readContent(r.Data)
	return r, err
}

// fileRelation is the relation of a link that leads to a file of the document.
const fileRelation = "file"

// isObject reports whether raw is a JSON object.
func isObject(raw json.RawMessage) bool {
	_, err := apicall.ReadFields(raw)
	return err == nil
}

// isEmpty reports whether a value is missing, null, or an object or list without anything in it.
func isEmpty(raw json.RawMessage) bool {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return len(raw) == 0
	}
	switch b.String() {
	case "null", "{}", "[]", `""`:
		return true
	}
	return false
}

// readList splits a list, or one object alone, into its elements. Elements that are null are left out.
func readList(raw json.RawMessage) ([]json.RawMessage, error) {
	if isEmpty(raw) {
		return nil, nil
	}
	all, err := apicall.ReadRecords(raw)
	return slices.DeleteFunc(all, func(one json.RawMessage) bool { return string(one) == "null" }), err
}

// readFileRefs reads which files a document has. One that is named twice is one file.
func readFileRefs(raw json.RawMessage) (files []archive.FileRef, err error) {
	refs, err := readList(raw)
	if err != nil {
		return nil, fmt.Errorf("the files of the document: %w", err)
	}
	for _, ref := range refs {
		f, err := apicall.ReadFields(ref, "refId", "fileName", "contentType")
		if err != nil {
			return nil, fmt.Errorf("a file of the document: %w", err)
		}
		id, err := archive.ParseFileID(f.Text("refId"))
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(files, func(had archive.FileRef) bool { return had.ID == id }) {
			files = append(files, archive.FileRef{ID: id, Told: archive.NewFileTold(f.Text("fileName"), f.Text("contentType"))})
		}
	}
	return files, nil
}

// readLinks reads links. They are advice: one that cannot be read is left out. relation is that of a link that tells none.
func readLinks(raw json.RawMessage, relation string) (links []archive.Link) {
	all, err := readList(raw)
	if err != nil {
		return nil
	}
	for _, one := range all {
		f, err := apicall.ReadFields(one, "rel", "href", "method")
		if err != nil || f.Text("href") == "" {
			continue
		}
		link := archive.Link{Relation: f.Word("rel"), Address: archive.DownloadURL(f.Text("href")), Method: f.Word("method")}
		if link.Relation == "" {
			link.Relation = relation
		}
		if link.Method == "" {
			link.Method = "GET"
		}
		links = append(links, link)
	}
	return links
}
