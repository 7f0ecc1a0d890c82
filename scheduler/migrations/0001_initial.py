
import django.db.models.deletion
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='DispatcherLock',
            fields=[
                ('name', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('holder', models.CharField(max_length=64)),
                ('expires_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Inbox',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40)),
                ('payload', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'verbose_name_plural': 'inbox',
                'ordering': ['id'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='RunNews',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40)),
                ('payload', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'verbose_name_plural': 'run news',
                'ordering': ['id'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Standing',
            fields=[
                ('device_id', models.UUIDField(primary_key=True, serialize=False)),
                ('failures_in_a_row', models.PositiveIntegerField(default=0)),
                ('benched_until', models.DateTimeField(null=True)),
                ('pace', models.FloatField(default=1.0, help_text='turnaround over expected time, learnt; makes deadlines')),
            ],
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('buyer_id', models.BigIntegerField(help_text='jobs of one buyer share the fleet as one')),
                ('state', models.CharField(choices=[('active', 'Active'), ('finished', 'Finished'), ('cancelled', 'Cancelled'), ('failed', 'Failed')], default='active', max_length=10)),
                ('ended_because', models.CharField(blank=True, max_length=40)),
                ('ended_message', models.CharField(blank=True, max_length=300)),
                ('program_sha256', models.CharField(max_length=64)),
                ('forward_sha256', models.CharField(max_length=64)),
                ('validation_sha256', models.CharField(max_length=64)),
                ('initial_params_sha256', models.CharField(max_length=64)),
                ('slices', models.JSONField(help_text='[{sha256, rows, bytes}], the training split cut up once, shuffled')),
                ('seed', models.BigIntegerField()),
                ('local_steps', models.PositiveIntegerField(help_text='H')),
                ('batch_size', models.PositiveIntegerField()),
                ('learning_rate', models.FloatField()),
                ('shards_per_round', models.PositiveIntegerField()),
                ('rounds_planned', models.PositiveIntegerField()),
                ('outer_learning_rate', models.FloatField(default=0.7)),
                ('outer_momentum', models.FloatField(default=0.8)),
                ('metric', models.CharField(help_text='accuracy or loss', max_length=20)),
                ('target_metric', models.FloatField(null=True)),
                ('step_flops', models.FloatField(help_text='static cost of one training step')),
                ('step_bytes', models.FloatField()),
                ('step_dispatches', models.PositiveIntegerField()),
                ('memory_bytes', models.PositiveBigIntegerField()),
                ('rates', models.JSONField(help_text='{device class: micro-USD per GPU-second}, frozen with the quote')),
                ('budget_microusd', models.BigIntegerField()),
                ('spent_microusd', models.BigIntegerField(default=0)),
                ('params_sha256', models.CharField(help_text='the newest parameters; the result, once it ended', max_length=64)),
                ('outer_state_sha256', models.CharField(blank=True, help_text='newest outer momentum', max_length=64)),
                ('waiting', models.CharField(blank=True, help_text='code of why it makes no headway now', max_length=20)),
                ('epoch', models.PositiveIntegerField(default=0)),
                ('pending_slices', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['created_at'],
                'constraints': [models.CheckConstraint(condition=models.Q(('spent_microusd__lte', models.F('budget_microusd'))), name='run_spends_no_more_than_its_budget')],
            },
        ),
        migrations.CreateModel(
            name='Round',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('index', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('open', 'Open'), ('aggregating', 'Aggregating'), ('closed', 'Closed')], default='open', max_length=12)),
                ('params_sha256', models.CharField(help_text='parameters that its shards start from', max_length=64)),
                ('outer_state_sha256', models.CharField(blank=True, help_text='outer momentum before this round', max_length=64)),
                ('opened_at', models.DateTimeField()),
                ('deadline_at', models.DateTimeField(help_text='set when a quorum of results is in', null=True)),
                ('closed_at', models.DateTimeField(null=True)),
                ('training_loss', models.FloatField(null=True)),
                ('validation_loss', models.FloatField(null=True)),
                ('validation_metric', models.FloatField(null=True)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rounds', to='scheduler.run')),
            ],
            options={
                'ordering': ['run', 'index'],
            },
        ),
        migrations.CreateModel(
            name='Shard',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('index', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('pending', 'Pending'), ('leased', 'Leased'), ('done', 'Done'), ('dropped', 'Dropped')], default='pending', max_length=10)),
                ('slice_index', models.PositiveIntegerField()),
                ('seed', models.BigIntegerField()),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('round', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='shards', to='scheduler.round')),
            ],
            options={
                'ordering': ['round', 'index'],
            },
        ),
        migrations.CreateModel(
            name='Lease',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('device_id', models.UUIDField(db_index=True)),
                ('owner_id', models.BigIntegerField()),
                ('device_class', models.CharField(max_length=20)),
                ('state', models.CharField(choices=[('granted', 'Granted'), ('running', 'Running'), ('reported', 'Reported'), ('accepted', 'Accepted'), ('refused', 'Refused'), ('handed_back', 'Handed Back'), ('expired', 'Expired'), ('revoked', 'Revoked')], default='granted', max_length=12)),
                ('reason', models.CharField(blank=True, help_text='code of a refusal, hand-back or revoke', max_length=40)),
                ('step', models.PositiveIntegerField(default=0)),
                ('granted_at', models.DateTimeField()),
                ('deadline_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('expected_gpu_us', models.PositiveBigIntegerField()),
                ('rate_microusd', models.BigIntegerField(help_text='micro-USD per GPU-second')),
                ('max_charge_microusd', models.BigIntegerField(help_text="reserved of the run's budget while the lease lives")),
                ('delta_sha256', models.CharField(blank=True, max_length=64)),
                ('delta_bytes', models.PositiveBigIntegerField(default=0)),
                ('delta_norm', models.FloatField(null=True)),
                ('losses', models.JSONField(default=list)),
                ('reported_gpu_us', models.PositiveBigIntegerField(default=0)),
                ('turnaround_us', models.PositiveBigIntegerField(default=0)),
                ('metered_gpu_us', models.PositiveBigIntegerField(default=0)),
                ('charge_microusd', models.BigIntegerField(default=0)),
                ('shard', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='leases', to='scheduler.shard')),
            ],
            options={
                'ordering': ['granted_at'],
            },
        ),
        migrations.AddConstraint(
            model_name='round',
            constraint=models.UniqueConstraint(fields=('run', 'index'), name='round_index_is_unique_in_a_run'),
        ),
        migrations.AddConstraint(
            model_name='shard',
            constraint=models.UniqueConstraint(fields=('round', 'index'), name='shard_index_is_unique_in_a_round'),
        ),
        migrations.AddConstraint(
            model_name='lease',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'accepted')), fields=('shard',), name='lease_a_shard_is_accepted_once'),
        ),
        migrations.AddConstraint(
            model_name='lease',
            constraint=models.CheckConstraint(condition=models.Q(('charge_microusd__lte', models.F('max_charge_microusd'))), name='lease_charges_no_more_than_reserved'),
        ),
    ]
