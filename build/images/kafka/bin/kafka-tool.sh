#!/bin/bash
# Every command-line tool of Kafka, by the name that it is called by.
set -euo pipefail
name=${0##*/}
tools=org.apache.kafka.tools
case ${name%.sh} in
kafka-topics) class=$tools.TopicCommand ;;
kafka-configs) class=kafka.admin.ConfigCommand ;;
kafka-storage) class=kafka.tools.StorageTool ;;
kafka-console-producer) class=$tools.ConsoleProducer ;;
kafka-console-consumer) class=$tools.consumer.ConsoleConsumer ;;
kafka-consumer-groups) class=$tools.consumer.group.ConsumerGroupCommand ;;
kafka-groups) class=$tools.GroupsCommand ;;
kafka-acls) class=$tools.AclCommand ;;
kafka-metadata-quorum) class=$tools.MetadataQuorumCommand ;;
kafka-get-offsets) class=$tools.GetOffsetShell ;;
kafka-dump-log) class=$tools.DumpLogSegments ;;
kafka-reassign-partitions) class=$tools.reassign.ReassignPartitionsCommand ;;
kafka-leader-election) class=$tools.LeaderElectionCommand ;;
kafka-producer-perf-test) class=$tools.ProducerPerformance ;;
kafka-broker-api-versions) class=$tools.BrokerApiVersionsCommand ;;
*)
	echo "$name: not a tool of this image" >&2
	exit 2
	;;
esac
case ${name%.sh} in
kafka-console-*) export KAFKA_HEAP_OPTS=${KAFKA_HEAP_OPTS:--Xmx512M} ;;
esac
exec /opt/kafka/bin/kafka-run-class.sh "$class" "$@"
