package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// part is a process of this program that answers questions, each of which it is asked and answers as a line of JSON. It
// measures itself, or is measured, and nothing else of the benchmark runs in it.
type part struct {
	command   *exec.Cmd
	in        io.WriteCloser
	questions *json.Encoder
	answers   *json.Decoder
}

// startPart starts this program in a part, and asks it the first question.
func startPart(ctx context.Context, name string, question, answer any) (*part, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	//nolint:gosec // it is this program
	command := exec.CommandContext(ctx, self)
	command.Env = append(os.Environ(), role+"="+name)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &part{command: command, in: in, questions: json.NewEncoder(in), answers: json.NewDecoder(out)}
	if err := p.ask(question, answer); err != nil {
		p.close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// reply is what a part answers.
type reply struct {
	// Mistake is what went wrong, empty if nothing did.
	Mistake string          `json:"mistake,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
}

// ask asks a question and waits for the answer.
func (p *part) ask(question, answer any) error {
	if err := p.questions.Encode(question); err != nil {
		return err
	}
	var r reply
	if err := p.answers.Decode(&r); err != nil {
		return err
	}
	if r.Mistake != "" {
		return errors.New(r.Mistake)
	}
	return json.Unmarshal(r.Answer, answer)
}

// close ends the process.
func (p *part) close() {
	_ = p.in.Close()
	_ = p.command.Process.Kill()
	// It was killed: how it ended says nothing.
	_ = p.command.Wait()
}

// answering answers the questions of the process that has started this one, until that has no more.
func answering(in io.Reader, out io.Writer, find func(question json.RawMessage) (any, error)) error {
	questions, replies := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var question json.RawMessage
		if err := questions.Decode(&question); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var r reply
		found, err := find(question)
		if err == nil {
			r.Answer, err = json.Marshal(found)
		}
		if err != nil {
			r = reply{Mistake: err.Error()}
		}
		if err := replies.Encode(r); err != nil {
			return err
		}
	}
}
