package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// figures are what is counted of one package or of several.
type figures struct {
	files     int
	code      int // code lines
	comments  int // own-line comment lines in function bodies
	functions []function
}

// function is one declared function or method.
type function struct {
	name  string
	place string // file and line
	lines int
}

// functionLines adds the lengths of all functions.
func (f *figures) functionLines() (n int) {
	for _, one := range f.functions {
		n += one.lines
	}
	return n
}

// add counts the figures of another package too.
func (f *figures) add(other *figures) {
	f.files += other.files
	f.code += other.code
	f.comments += other.comments
	f.functions = append(f.functions, other.functions...)
}

// singleWords counts the functions whose name is a single word.
func (f *figures) singleWords() (n int) {
	for _, one := range f.functions {
		if countWords(one.name) <= 1 {
			n++
		}
	}
	return n
}

// measureFile adds the figures of one file to those of its package.
func measureFile(root, file string, packages map[string]*figures) error {
	src, err := os.ReadFile(filepath.Join(root, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted, but git still lists it
	}
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if ast.IsGenerated(tree) {
		return nil
	}
	p := packages[path.Dir(file)]
	if p == nil {
		p = &figures{}
		packages[path.Dir(file)] = p
	}
	p.files++
	code, comments := classifyLines(src)
	p.code += len(code)
	for _, d := range tree.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok || d.Body == nil {
			continue
		}
		begin, end := set.Position(d.Type.Func).Line, set.Position(d.Body.Rbrace).Line
		p.functions = append(p.functions, function{d.Name.Name, fmt.Sprintf("%s:%d", file, begin), end - begin + 1})
		for line := set.Position(d.Body.Lbrace).Line; line < end; line++ {
			if comments[line] && !code[line] {
				p.comments++
			}
		}
	}
	return nil
}

// classifyLines returns the lines that hold code and those that hold a comment; a line may hold both.
func classifyLines(src []byte) (code, comments map[int]bool) {
	code, comments = map[int]bool{}, map[int]bool{}
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return code, comments
		}
		lines := code
		switch {
		case tok == token.SEMICOLON && text == "\n":
			continue // inserted by the scanner: not in the source
		case tok == token.COMMENT:
			lines = comments
		}
		begin := file.Line(pos)
		for i := range strings.Count(text, "\n") + 1 {
			lines[begin+i] = true
		}
	}
}

// countWords counts the words of a name in camel case. A run of capitals is one word, as in parseJSONLine.
func countWords(name string) (n int) {
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) {
			continue
		}
		begins := i == 0 || !unicode.IsLetter(runes[i-1])
		if unicode.IsUpper(r) && i > 0 {
			nextLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			begins = begins || unicode.IsLower(runes[i-1]) || unicode.IsUpper(runes[i-1]) && nextLower
		}
		if begins {
			n++
		}
	}
	return n
}
