// Grafana's own types, made strict enough to find a misspelt key in a literal, and loose enough to take the
// plain values of a JSON file where they name the members of an enum.
import type { Dashboard, FieldConfig, Panel, RowPanel } from '@grafana/schema';
import type * as heatmap from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
import type * as stateTimeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as text from '@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen';
import type * as timeSeries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

type Plain<T> = T extends string
  ? `${T}`
  : T extends number | boolean | null | undefined
    ? T
    : T extends Array<infer Item>
      ? Array<Plain<Item>>
      : T extends object
        ? { [Key in keyof T]: Plain<T[Key]> }
        : T;

type DataSource = { type: 'prometheus'; uid: '${datasource}' };

type Target = {
  datasource: DataSource;
  refId: string;
  expr: string;
  legendFormat: string;
  instant: boolean;
  range: boolean;
  exemplar: boolean;
  editorMode: 'code';
  format?: 'table' | 'heatmap';
};

type PanelOf<Type extends string, Options, Custom = Record<string, never>> = Plain<
  Omit<Panel, 'type' | 'options' | 'fieldConfig' | 'targets'>
> & {
  type: Type;
  options: Plain<Options>;
  fieldConfig?: {
    defaults: Plain<Omit<FieldConfig, 'custom'>> & { custom?: Plain<Partial<Custom>> };
    overrides: Array<{
      matcher: { id: 'byName'; options: string };
      properties: Array<{ id: string; value: unknown }>;
    }>;
  };
  targets?: Target[];
};

type KnownPanel =
  | PanelOf<'text', text.Options>
  | PanelOf<'stat', stat.Options>
  | PanelOf<'table', table.Options, table.FieldConfig>
  | PanelOf<'timeseries', timeSeries.Options, timeSeries.FieldConfig>
  | PanelOf<'state-timeline', stateTimeline.Options, stateTimeline.FieldConfig>
  | PanelOf<'heatmap', heatmap.Options, heatmap.FieldConfig>
  | Plain<RowPanel>;

type Annotation = {
  name: string;
  datasource: DataSource;
  enable: boolean;
  hide: boolean;
  iconColor: string;
  target: { refId: 'Anno'; expr: string; interval: string };
  titleFormat: string;
  textFormat: string;
  tagKeys: string;
  useValueForTime: boolean;
};

type Variable = Plain<NonNullable<NonNullable<Dashboard['templating']>['list']>[number]> & { definition?: string };

export type CheckedDashboard = Plain<Omit<Dashboard, 'panels' | 'annotations' | 'templating'>> & {
  panels: KnownPanel[];
  annotations: { list: Annotation[] };
  templating: { list: Variable[] };
};
