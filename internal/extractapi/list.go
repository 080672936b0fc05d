package extractapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

// continuation is the header of an answer that is only a part of the list. The same question with the same header gives the next
// part. The specification shows no pages; deployed services may have them.
const continuation = "x-amz-meta-continuationtoken"

// maxParts limits the parts of one list.
const maxParts = 1000

// List reads the list of extracts, or of those of a status. To find what is to
// be taken it is asked without one: it is not specified whether a download
// alone changes an extract's status. The list is Whole only where its last part
// came and each record of it could be read.
func (c *Client) List(ctx context.Context, status string) (archive.ExtractList, error) {
	const op = "list the extracts"
	list := archive.ExtractList{Whole: true}
	var header http.Header
	var query url.Values
	if status != "" {
		query = url.Values{"processingStatus": {status}}
	}
	var tokens []string
	for {
		ans, err := c.getJSON(ctx, op, listAnswer, header, query)
		if err != nil {
			return archive.ExtractList{}, err
		}
		err = addExtracts(&list, ans.Body)
		next := ans.Header.Get(continuation)
		ans.Release()
		switch {
		case err == nil && next == "":
			return settleList(list), nil
		case err == nil && (slices.Contains(tokens, next) || len(tokens) == maxParts):
			// A list that goes in a circle has no end that could be called its end.
			err = errors.New("the list does not end: the token of its next part comes again and again")
		}
		if err != nil {
			return archive.ExtractList{}, ans.Unreadable(op, err)
		}
		tokens = append(tokens, next)
		header = http.Header{http.CanonicalHeaderKey(continuation): {next}}
	}
}

// addExtracts adds the records of one part of the list.
func addExtracts(list *archive.ExtractList, body []byte) error {
	records, err := apicall.ReadRecords(body, "extracts", "dataExtracts", "items")
	if err != nil {
		return err
	}
	read := 0
	for _, raw := range records {
		e, err := readExtract(raw)
		if err != nil {
			list.Whole = false
			continue
		}
		list.Extracts = append(list.Extracts, e)
		read++
	}
	if len(records) > 0 && read == 0 {
		return apicall.ErrUnknownForm // an answer of unreadable records is no empty list
	}
	return nil
}

// settleList leaves one record of each extract. If two records of one extract
// differ, nobody can say which one is right: both are left out, and the list is
// not whole.
func settleList(list archive.ExtractList) archive.ExtractList {
	first := map[archive.ExtractID]archive.Extract{}
	split := map[archive.ExtractID]bool{}
	for _, e := range list.Extracts {
		if had, seen := first[e.ID]; seen && had != e {
			split[e.ID] = true
			list.Whole = false
		} else if !seen {
			first[e.ID] = e
		}
	}
	settled := list.Extracts[:0]
	for _, e := range list.Extracts {
		if _, unused := first[e.ID]; unused && !split[e.ID] {
			settled = append(settled, e)
		}
		delete(first, e.ID)
	}
	list.Extracts = settled
	return list
}

func readExtract(raw json.RawMessage) (archive.Extract, error) {
	f, err := apicall.ReadFields(raw, "id", "extractId", "type", "startDate", "endDate", "fileCount", "processingStatus", "extractDate", "extractName")
	if err != nil {
		return archive.Extract{}, err
	}
	id, err := extractIDOf(f, "id", "extractId")
	if err != nil {
		return archive.Extract{}, err
	}
	return archive.Extract{ID: id, Type: word(f, "type"), Start: f.Time("startDate"), End: f.Time("endDate"), Made: f.Time("extractDate"),
		Files: f.Count("fileCount"), Status: word(f, "processingStatus"), Name: word(f, "extractName")}, nil
}

func extractIDOf(f apicall.Fields, names ...string) (archive.ExtractID, error) {
	given, err := f.Either(names...)
	if err != nil {
		return "", err
	}
	return archive.ParseExtractID(apicall.ReadText(given))
}

// word returns a text of the service in one line of at most 200 characters.
func word(f apicall.Fields, name string) string { return sanitize.Message(f.Text(name), 200) }

// Files reads the list of the files of an extract. It fails where one record cannot be read: a list with a hole would make an
// extract look whole that is not.
func (c *Client) Files(ctx context.Context, id archive.ExtractID) ([]archive.ExtractFile, error) {
	const op = "list the files of an extract"
	ans, err := c.getJSON(ctx, op, filesAnswer, nil, nil, string(id))
	if err != nil {
		return nil, err
	}
	defer ans.Release()
	records, err := apicall.ReadRecords(ans.Body, "files", "items")
	if err != nil {
		return nil, ans.Unreadable(op, err)
	}
	files := make([]archive.ExtractFile, 0, len(records))
	for _, raw := range records {
		file, err := readFile(raw, id)
		if err != nil {
			return nil, ans.Unreadable(op, err)
		}
		files = append(files, file)
	}
	return files, nil
}

func readFile(raw json.RawMessage, of archive.ExtractID) (archive.ExtractFile, error) {
	f, err := apicall.ReadFields(raw, "extractId", "tableName", "fileName", "downloadUrl", "downloadURL", "startDate", "endDate")
	if err != nil {
		return archive.ExtractFile{}, err
	}
	if told := f.Text("extractId"); told != "" && told != string(of) {
		return archive.ExtractFile{}, fmt.Errorf("a file of extract %q stands in the list of extract %q", sanitize.Message(told, 60), of)
	}
	link, err := f.Either("downloadUrl", "downloadURL")
	if err != nil {
		return archive.ExtractFile{}, err
	}
	address, _ := apicall.ReadLink(link)
	file := archive.ExtractFile{Extract: of, Table: word(f, "tableName"), Name: word(f, "fileName"), URL: archive.DownloadURL(address),
		Start: f.Time("startDate"), End: f.Time("endDate")}
	switch {
	case file.Name == "":
		return archive.ExtractFile{}, errors.New("a file has no name")
	case address == "":
		return archive.ExtractFile{}, fmt.Errorf("the file %q has no address", file.Name)
	}
	return file, nil
}
