package docket.peer;

import org.apache.kafka.clients.consumer.ConsumerRecord;

/** A decision and the record that it came in. */
record Row(Decision decision, ConsumerRecord<byte[], byte[]> from) {}
