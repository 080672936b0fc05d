package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// What the one extract of the stand-in has.
const (
	extractFiles    = 40
	extractFileSize = 4 << 20
)

// extractFile is what each file of the extract has: a ZIP with one entry that is not packed.
var extractFile = sync.OnceValues(func() ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	content := make([]byte, extractFileSize)
	_, err := rand.NewChaCha8([32]byte{'x'}).Read(content)
	w, errEntry := z.CreateHeader(&zip.FileHeader{Name: "rows.json", Method: zip.Store})
	if err = errors.Join(err, errEntry); err == nil {
		_, err = w.Write(content)
	}
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
})

// addExtractRoutes serves one extract.
func (s *fakeServer) addExtractRoutes(mux *http.ServeMux) {
	const all = "/v1/dataExtracts"
	mux.HandleFunc("GET "+all, s.requirePassword(func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now().UTC().Format(time.RFC3339)
		writeJSON(w, []any{map[string]any{"id": "1", "type": "Delta", "startDate": now, "endDate": now, "extractDate": now, "extractName": "books", "fileCount": extractFiles}})
	}))
	mux.HandleFunc("GET "+all+"/specification/tableDefinition", s.requirePassword(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, []any{}) }))
	mux.HandleFunc("GET "+all+"/1", s.requirePassword(func(w http.ResponseWriter, _ *http.Request) {
		var files []any
		for i := range extractFiles {
			files = append(files, map[string]string{"extractId": "1", "tableName": "T", "fileName": fmt.Sprint("T_", i), "downloadUrl": fmt.Sprint(s.base, all, "/1/files/", i)})
		}
		writeJSON(w, files)
	}))
	mux.HandleFunc("GET "+all+"/1/files/{number}", s.requirePassword(func(w http.ResponseWriter, _ *http.Request) {
		content, err := extractFile()
		if err != nil {
			http.Error(w, "{}", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content) // unneeded once the client has gone
	}))
}
