// Judges checkpoints and proofs with Go's golang.org/x/mod/sumdb, as a second opinion on ours. Reads one JSON
// object per line and prints true or false for each.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type question struct {
	Kind    string
	Note    string
	Vkey    string
	Entry   string
	Leaf    tlog.Hash
	Index   int64
	Size    int64
	Root    tlog.Hash
	OldSize int64
	OldRoot tlog.Hash
	Hashes  []tlog.Hash
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(judge(q) == nil)
	}
}

func judge(q question) error {
	switch q.Kind {
	case "note":
		verifier, err := note.NewVerifier(q.Vkey)
		if err != nil {
			return err
		}
		_, err = note.Open([]byte(q.Note), note.VerifierList(verifier))
		return err
	case "entry":
		if tlog.RecordHash([]byte(q.Entry)) != q.Leaf {
			return fmt.Errorf("another hash")
		}
		return nil
	case "inclusion":
		return tlog.CheckRecord(q.Hashes, q.Size, q.Root, q.Index, q.Leaf)
	case "consistency":
		return tlog.CheckTree(q.Hashes, q.Size, q.Root, q.OldSize, q.OldRoot)
	}
	return fmt.Errorf("unknown kind %q", q.Kind)
}
