// Command kfake is a Kafka of three brokers in one process, for the tests of contrib/kafkastream: package kfake of franz-go, with its data on
// disk. It is a module of its own, so that nobody who uses the library has its dependencies, and a program, so that it can be killed and frozen.
//
//	kfake FOLDER PORT PORT PORT
//
// It prints a line when it takes connections, and one for each command on its standard input: `move` gives each partition another leader, `drop` ends the
// connection of the next produce request, `late` stores the next produce request and answers that it has failed. It ends with its input.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kfake:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("usage: kfake FOLDER PORT …")
	}
	var ports []int
	for _, argument := range arguments[1:] {
		port, err := strconv.Atoi(argument)
		if err != nil {
			return err
		}
		ports = append(ports, port)
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(len(ports)), kfake.Ports(ports...), kfake.DataDir(arguments[0]), kfake.SyncWrites(), kfake.DefaultNumPartitions(4),
	)
	if err != nil {
		return err
	}
	defer cluster.Close()
	fmt.Println("ready")
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		if err := obey(cluster, input.Text()); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return input.Err()
}

func obey(cluster *kfake.Cluster, command string) error {
	switch command {
	case "move":
		cluster.ShufflePartitionLeaders()
	case "drop":
		cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			return nil, errors.New("dropped"), true
		})
	case "late":
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicasAfterAppend})
	default:
		return fmt.Errorf("no command: %q", command)
	}
	return nil
}
